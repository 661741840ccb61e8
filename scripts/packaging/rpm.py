# SPDX-License-Identifier: Apache-2.0
"""A package for RHEL, Rocky, Fedora and SUSE."""
import os
import pathlib
import subprocess
import tempfile

import contents


def write(release, package, folder):
    path = folder / f"{package.name}-{release.version}-1.{release.machine}.rpm"
    with tempfile.TemporaryDirectory() as scratch:
        top = pathlib.Path(scratch)
        placed = {f"usr/{name}": file for name, file in contents.moved(package.files, "lib64").items()}
        contents.write_tree(placed, top / "tree", release.epoch)
        spec = top / "package.spec"
        spec.write_text(spec_text(release, package, placed), encoding="utf-8")
        subprocess.run(["rpmbuild", "-bb", "--quiet", "--target", f"{release.machine}-linux",
                        "--define", f"_topdir {top}", "--define", f"tree {top / 'tree'}",
                        "--define", f"_rpmdir {top / 'rpms'}", spec],
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch)})
        made, = (top / "rpms").rglob("*.rpm")
        path.write_bytes(made.read_bytes())
    return path


def relations(package):
    """What it works with, and how the loader gets to know the plugin."""
    if package.name == contents.SOFTNIC.name:
        return "Recommends: beeline", ""
    return (f"Recommends: libibverbs\nRecommends: librdmacm\nSuggests: python3\nSuggests: {contents.SOFTNIC.name}",
            "%post -p /sbin/ldconfig\n%postun -p /sbin/ldconfig\n")


def own_folders(files):
    """Those that no other package has, which the erased package takes away."""
    folders = {str(folder) for name in files for folder in pathlib.PurePath(name).parents}
    return sorted(folder for folder in folders if "beeline" in folder)


def spec_text(release, package, files):
    packages, scripts = relations(package)
    # rpmbuild would strip and search the files again, and write its own time and host into the package.
    listed = "\n".join([*(f"%dir /{name}" for name in own_folders(files)), *(f"/{name}" for name in sorted(files))])
    return f"""\
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
%global _buildhost beeline
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global _binary_payload w6.gzdio
AutoReqProv: no
Name: {package.name}
Version: {release.version}
Release: 1
Summary: {package.summary}
License: Apache-2.0
Packager: {release.maintainer}
Requires: libc.so.6(GLIBC_2.28)(64bit)
{packages}

%description
{package.description}

%install
cp -a %{{tree}}/. %{{buildroot}}/

{scripts}
%files
{listed}
"""
