# SPDX-License-Identifier: Apache-2.0
"""A package for Debian and Ubuntu."""
import os
import pathlib
import subprocess
import tempfile

import contents


def write(release, package, folder):
    path = folder / f"{package.name}_{release.version}_{release.architecture}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "root"
        placed = contents.moved(package.files, f"lib/{release.machine}-linux-gnu",
                                "share/zsh/vendor-completions/_beeline")
        documents = f"share/doc/{package.name}"
        placed[f"{documents}/copyright"] = placed[f"{documents}/LICENSE"]  # by Debian's policy no symbolic link
        placed[f"{documents}/LICENSE"] = contents.File(b"", 0o777, "copyright")
        tree = {f"usr/{name}": file for name, file in placed.items()}
        tree["DEBIAN/control"] = contents.File(control_text(release, package).encode())
        if contents.PLUGIN in package.files:  # ldconfig puts it into the loader's list
            tree["DEBIAN/triggers"] = contents.File(b"activate-noawait ldconfig\n")
        contents.write_tree(tree, root, release.epoch)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch)})
    return path


def relations(release, package):
    """Before there were two packages, beeline contained the files of both."""
    if package.name == contents.SOFTNIC.name:
        return f"Recommends: beeline\nReplaces: beeline (<< {release.version})"
    return ("Recommends: libibverbs1, ibverbs-providers, librdmacm1\n"
            f"Suggests: libhwloc15, python3, {contents.SOFTNIC.name}")


def control_text(release, package):
    kilobytes = sum(len(file.data) for file in package.files.values()) // 1024
    description = package.description.replace("\n", "\n ")
    return f"""\
Package: {package.name}
Version: {release.version}
Architecture: {release.architecture}
Maintainer: {release.maintainer}
Section: libs
Priority: optional
Installed-Size: {kilobytes}
Depends: libc6 (>= 2.28)
{relations(release, package)}
Description: {package.summary}
 {description}
"""
