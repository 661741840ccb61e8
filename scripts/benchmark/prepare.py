# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of a benchmark, and builds them if they are those of the sources."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from errors import Misuse
from profiles import IS_INSTALLED, ROOT


@dataclass
class Programs:
    beeline: Path
    softnic: Path
    plugin: Path  # its folder


def programs(named):
    """Those of the build folder that --build names, those of the packages, or those in build/."""
    if IS_INSTALLED and not named:
        prefix = ROOT.parent.parent
        # The commands of a wheel are beside its Python.
        places = os.pathsep.join(map(str, (prefix / "bin", Path(sys.executable).parent, os.environ.get("PATH", ""))))
        beeline, softnic = (Path(shutil.which(name, path=places) or name) for name in ("beeline", "softnic"))
        return Programs(beeline, softnic, prefix / "lib")
    folder = Path(named or ROOT / "build").absolute()
    return Programs(folder / "tools" / "beeline", folder / "softnic" / "softnic", folder / "plugin" / "abi")


def show_version(named):
    beeline = programs(named).beeline
    if not beeline.exists():
        raise Misuse(f"{beeline} does not exist")
    return subprocess.run([beeline, "--version"], check=False).returncode


def in_lib(script):
    """Runs shell commands with the functions of scripts/lib.sh."""
    return subprocess.run(["bash", "-c", f'source "$0"; {script}', str(ROOT / "scripts" / "lib.sh")],
                          check=False).returncode


def make_ready(profile, found, named):
    """Builds what the profile runs, unless --build names a folder, and says what is missing."""
    wanted = [found.softnic] if profile.engine == "beeline-perf" or profile.fabric else []
    if profile.engine == "beeline-perf":
        wanted.append(found.beeline)
    if wanted and not named and not IS_INSTALLED:
        build = 'need_packages "${build_packages[@]}"; section Building; timed build build_lane plain demo'
        if in_lib(build) != 0:
            raise Misuse("the build failed; see its output above")
    for file in wanted:
        if not file.is_absolute():
            raise Misuse(f"{file} is not in PATH; softnic is in the package beeline-softnic, for pip "
                         "beeline-nccl-softnic")
        if not file.exists():
            raise Misuse(f"{file} is not built: ninja -C {found.softnic.parents[1]} demo")
