# SPDX-License-Identifier: Apache-2.0
"""What CHANGELOG.md says about each release."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$")


class Release(NamedTuple):
    version: str
    commit: str | None  # its last one, which only a later commit can name
    protocol: tuple[int, int] | None  # the oldest and the newest version that it speaks
    page: int | None  # the version of the statistics page


def number_after(words, text):
    found = re.search(words + r" (\d+)", text)
    return int(found[1]) if found else None


def release_of(version, text):
    """`text` is the first paragraph below the heading, which is written for people."""
    commit = re.search(r"The last commit of this version is ([0-9a-f]{7,40})\.", text)
    protocol = re.search(r"speaks versions? (\d+)(?: to (\d+))? of the protocol", text)
    return Release(version, commit and commit[1],
                   protocol and (int(protocol[1]), int(protocol[2] or protocol[1])),
                   number_after("writes version", text))


def written():
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def is_after_a_release():
    """Whether it begins with changes that no release has."""
    return re.search(r"^## (.*)$", written(), re.M)[1] == "Unreleased"


def releases(text=None):
    """The newest first."""
    if text is None:
        text = written()
    found = []
    for part in re.split(r"^(?=## )", text, flags=re.M)[1:]:
        heading, _, rest = part.partition("\n")
        match = HEADING.match(heading)
        if match:
            found.append(release_of(match[1], " ".join(rest.strip().split("\n\n")[0].split())))
    return found
