# SPDX-License-Identifier: Apache-2.0
"""Prepares a benchmark: builds the programs, and finds a Python that can plot."""

import subprocess
import sys
from pathlib import Path

from errors import Misuse
from profiles import ROOT


def in_lib(script):
    """Runs shell commands with the functions of scripts/lib.sh."""
    return subprocess.run(["bash", "-c", f'source "$0"; {script}', str(ROOT / "scripts" / "lib.sh")],
                          check=False).returncode


def build_folder(profile, named):
    """The build folder. The one that --build names is used as it is; the default one is built if a profile
    runs programs from it."""
    folder = Path(named).absolute() if named else ROOT / "build"
    wanted = [folder / "softnic" / "softnic"] if profile.engine == "beeline-perf" or profile.fabric else []
    if profile.engine == "beeline-perf":
        wanted.append(folder / "tools" / "beeline")
    if wanted and not named:
        build = 'need_packages "${build_packages[@]}"; section Building; timed build build_lane plain demo'
        if in_lib(build) != 0:
            raise Misuse("the build failed; see its output above")
    for file in wanted:
        if not file.exists():
            raise Misuse(f"{file} is not built: ninja -C {folder} demo")
    return folder


def plotting_python():
    """A Python with matplotlib, or None. It is not installed for a plot: on Debian, that takes 144 packages."""
    return next((python for python in (sys.executable, "/usr/bin/python3") if can_plot(python)), None)


def can_plot(python):
    try:
        return subprocess.run([python, "-c", "import matplotlib"], capture_output=True,
                              check=False).returncode == 0
    except OSError:
        return False
