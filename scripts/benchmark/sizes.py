# SPDX-License-Identifier: Apache-2.0
"""Parses and formats sizes of messages."""

import re

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SIZE = re.compile(r"(\d+)([KMG]?)")


def parse_size(text):
    found = SIZE.fullmatch(text)
    return int(found.group(1)) * UNITS[found.group(2)] if found else None


def parse_range(text):
    """"8..8G" as (8, 8589934592). Raises ValueError, whose text says what to write."""
    ends = [parse_size(end) for end in text.split("..")]
    if len(ends) == 2 and None not in ends and 0 < ends[0] <= ends[1]:
        return tuple(ends)
    raise ValueError(f'"{text}" is no range of sizes; write the least and the most as 8..8G')


def range_text(ends):
    return "..".join(short(size) for size in ends)


def short(size):
    for letter in "GMK":
        if size % UNITS[letter] == 0 and size:
            return f"{size // UNITS[letter]}{letter}"
    return str(size)


def size_text(size):
    for letter in "GMK":
        if size >= UNITS[letter]:
            return f"{size / UNITS[letter]:.4g} {letter}iB"
    return f"{size} B"
