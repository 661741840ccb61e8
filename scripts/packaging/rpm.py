# SPDX-License-Identifier: Apache-2.0
"""A package for RHEL, Rocky, Fedora and SUSE."""
import os
import pathlib
import subprocess
import tempfile

import contents


def write(release, files, folder):
    path = folder / f"beeline-{release.version}-1.{release.machine}.rpm"
    with tempfile.TemporaryDirectory() as scratch:
        top = pathlib.Path(scratch)
        placed = {f"usr/{name}": file for name, file in contents.moved(files, "lib64").items()}
        contents.write_tree(placed, top / "tree", release.epoch)
        spec = top / "beeline.spec"
        spec.write_text(spec_text(release, placed), encoding="utf-8")
        subprocess.run(["rpmbuild", "-bb", "--quiet", "--target", f"{release.machine}-linux",
                        "--define", f"_topdir {top}", "--define", f"tree {top / 'tree'}",
                        "--define", f"_rpmdir {top / 'rpms'}", spec],
                       check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch)})
        made, = (top / "rpms").rglob("*.rpm")
        path.write_bytes(made.read_bytes())
    return path


def spec_text(release, files):
    # rpmbuild would strip and search the files again, and write its own time and host into the package.
    listed = "\n".join(f"/{name}" for name in sorted(files))
    return f"""\
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
%global _buildhost beeline
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global _binary_payload w6.gzdio
AutoReqProv: no
Name: beeline
Version: {release.version}
Release: 1
Summary: {contents.SUMMARY}
License: Apache-2.0
Requires: libc.so.6(GLIBC_2.28)(64bit)
Recommends: libibverbs
Recommends: librdmacm

%description
{contents.DESCRIPTION}

%install
cp -a %{{tree}}/. %{{buildroot}}/

%post -p /sbin/ldconfig
%postun -p /sbin/ldconfig

%files
{listed}
"""
