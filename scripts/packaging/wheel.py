# SPDX-License-Identifier: Apache-2.0
"""Wheels for pip. They have no code for one version of Python, and no symbolic links, which wheels cannot have."""
import base64
import hashlib
import pathlib
import time
import zipfile

import contents

HERE = pathlib.Path(__file__).parent
# pip installs a wheel with this tag where glibc is 2.28 or newer.
TAG = "py3-none-manylinux_2_28_"
# Each has a module whose functions run its commands.
MODULES = {"beeline": "beeline_nccl", "beeline-softnic": "beeline_nccl_softnic"}
COMMANDS = {
    "beeline": "beeline = beeline_nccl:run_beeline\nbeeline-bench = beeline_nccl:run_bench\n",
    "beeline-softnic": "softnic = beeline_nccl_softnic:run_softnic\n",
}


def write(release, package, folder):
    module = MODULES[package.name]
    name, tag = f"{module}-{release.python_version}", TAG + release.machine
    placed = {f"{module}/{path}": file for path, file in package.files.items() if not file.link}
    placed[f"{module}/__init__.py"] = contents.File((HERE / f"{module}.py").read_bytes())
    placed[f"{name}.dist-info/METADATA"] = contents.File(metadata(release, package).encode())
    placed[f"{name}.dist-info/WHEEL"] = contents.File(
        f"Wheel-Version: 1.0\nGenerator: beeline\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    placed[f"{name}.dist-info/entry_points.txt"] = contents.File(
        f"[console_scripts]\n{COMMANDS[package.name]}".encode())
    record = f"{name}.dist-info/RECORD"
    placed[record] = contents.File(record_text(placed, record).encode())

    path = folder / f"{name}-{tag}.whl"
    when = time.gmtime(release.epoch)[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for each, file in sorted(placed.items()):
            info = zipfile.ZipInfo(each, when)
            info.external_attr = (0o100000 | file.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.data)
    return path


def record_text(placed, record):
    lines = []
    for path, file in sorted(placed.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.data).digest()).decode().rstrip("=")
        lines.append(f"{path},sha256={digest},{len(file.data)}\n")
    return "".join(lines) + f"{record},,\n"


def metadata(release, package):
    return f"""\
Metadata-Version: 2.1
Name: {MODULES[package.name].replace("_", "-")}
Version: {release.python_version}
Summary: {package.summary}
License: Apache-2.0
Requires-Python: >=3.6
Description-Content-Type: text/plain

{package.description}
"""
