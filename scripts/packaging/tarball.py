# SPDX-License-Identifier: Apache-2.0
"""Archives whose bytes depend on their contents only."""
import gzip
import io
import pathlib
import tarfile


def packed(files, prefix, epoch, compressed=True):
    """The bytes of an archive in which each name begins with `prefix`."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        folders = {str(parent) for name in files for parent in pathlib.PurePath(prefix + name).parents}
        for folder in sorted(folders - {"."}):
            archive.addfile(entry(folder, 0o755, epoch, tarfile.DIRTYPE))
        for name, file in sorted(files.items()):
            info = entry(prefix + name, file.mode, epoch, tarfile.SYMTYPE if file.link else tarfile.REGTYPE)
            info.linkname, info.size = file.link, len(file.data)
            archive.addfile(info, io.BytesIO(file.data))
    return gzip.compress(raw.getvalue(), mtime=0) if compressed else raw.getvalue()


def entry(name, mode, epoch, kind):
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.type = mode, epoch, kind
    info.uname = info.gname = "root"
    return info


def write(release, package, folder):
    """Both packages are unpacked into the same folder."""
    path = folder / f"{release.stem(package)}.tar.gz"
    path.write_bytes(packed(package.files, f"beeline-{release.version}/", release.epoch))
    return path


def write_debug(release, debug, folder):
    """To be unpacked in /usr, where debuggers look."""
    path = folder / f"{release.stem()}-debug.tar.gz"
    path.write_bytes(packed(debug, "", release.epoch))
    return path
