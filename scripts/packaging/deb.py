# SPDX-License-Identifier: Apache-2.0
"""A package for Debian and Ubuntu."""
import os
import pathlib
import subprocess
import tempfile

import contents


def write(release, files, folder):
    path = folder / f"beeline_{release.version}_{release.architecture}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "root"
        placed = contents.moved(files, f"lib/{release.machine}-linux-gnu")
        placed["share/doc/beeline/copyright"] = placed.pop("share/doc/beeline/LICENSE")
        control = contents.File(control_text(release, placed).encode())
        # ldconfig puts the plugin into the loader's list.
        trigger = contents.File(b"activate-noawait ldconfig\n")
        contents.write_tree({"DEBIAN/control": control, "DEBIAN/triggers": trigger,
                             **{f"usr/{name}": file for name, file in placed.items()}}, root, release.epoch)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch)})
    return path


def control_text(release, files):
    kilobytes = sum(len(file.data) for file in files.values()) // 1024
    description = contents.DESCRIPTION.replace("\n", "\n ")
    return f"""\
Package: beeline
Version: {release.version}
Architecture: {release.architecture}
Maintainer: The Beeline project
Section: libs
Priority: optional
Installed-Size: {kilobytes}
Depends: libc6 (>= 2.28)
Recommends: libibverbs1, ibverbs-providers, librdmacm1
Suggests: libhwloc15
Description: {contents.SUMMARY}
 {description}
"""
