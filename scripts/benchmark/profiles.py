# SPDX-License-Identifier: Apache-2.0
"""Profiles: files of NAME=value. Lower-case names are settings of the benchmark, upper-case ones the
environment of every rank."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from errors import Misuse
from sizes import parse_range

ROOT = Path(__file__).resolve().parent.parent.parent
IS_INSTALLED = not (ROOT / "meson.build").exists()  # ROOT is share/beeline of a package
FOLDER = ROOT / "nccl-tests-config" / "profiles"
HOSTFILES = ROOT / "nccl-tests-config" / "hostfiles"
LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


def choice(*words):
    def parse(text):
        if text in words:
            return text
        raise ValueError(f'"{text}" is none of {", ".join(words)}')
    return parse


def whole(text):
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ValueError(f'"{text}" is no number from 1 on')


def seconds(text):
    if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) > 0:
        return float(text)
    raise ValueError(f'"{text}" is no time in seconds, such as 0.4')


def own_file(text):
    if (ROOT / text).exists():
        return str(ROOT / text)
    raise ValueError(f"there is no {text} in {ROOT}")


@dataclass
class Profile:
    name: str
    file: str
    title: str = ""
    engine: str = "nccl-tests"
    launcher: str = "mpirun"
    ranks: Optional[int] = None
    sizes: tuple = (8, 8 << 30)
    baseline: Optional[str] = None
    iterations: int = 20
    wrapper: Optional[str] = None
    fabric: Optional[str] = None
    hosts: Optional[str] = None
    comms: int = 1
    seconds: float = 0.4
    environment: dict = field(default_factory=dict)


SETTINGS = {
    "title": str,
    "engine": choice("nccl-tests", "beeline-perf"),
    "launcher": choice("mpirun", "srun", "local"),
    "ranks": whole,
    "sizes": parse_range,
    "baseline": choice("IB", "Socket"),
    "iterations": whole,
    "wrapper": own_file,
    "fabric": own_file,
    "hosts": str,
    "comms": whole,
    "seconds": seconds,
}


def names():
    return sorted(file.stem for file in FOLDER.glob("*.conf"))


def load(name):
    """A profile by its name, or by its file if the name contains a slash or a dot."""
    is_file = "/" in name or "." in name
    file = Path(name) if is_file else FOLDER / f"{name}.conf"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        if is_file:
            raise Misuse(f"{name}: {error.strerror}; name the file of a profile") from error
        raise Misuse(f'no profile "{name}"; there are {", ".join(names())}; a file of your own is '
                     "with its folder, ./mine.conf") from error
    profile = Profile(name=file.stem, file=os.path.abspath(file), title=file.stem)
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            read_line(profile, line, f"{file}:{number}")
    return profile


def read_line(profile, line, place):
    found = LINE.fullmatch(line)
    if not found:
        raise Misuse(f'{place}: "{line}" is not NAME=value')
    name, value = found.groups()
    if name.isupper():
        if name in profile.environment:
            raise Misuse(f"{place}: {name} is set twice; keep one")
        profile.environment[name] = value
    elif name in SETTINGS:
        try:
            setattr(profile, name, SETTINGS[name](value))
        except ValueError as reason:
            raise Misuse(f"{place}: {name}: {reason}") from reason
    else:
        raise Misuse(f"{place}: no setting {name}; there are {', '.join(SETTINGS)} "
                     "(environment variables are written in upper case)")
