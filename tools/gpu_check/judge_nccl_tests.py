#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what all_reduce_perf of nccl-tests printed: that all ranks were one run, that it came to its
end, that every element was checked, and that none was wrong.

Usage: judge_nccl_tests.py FILE RANKS
Prints "right, ..." or "WRONG: ..."; exit status 0 or 1.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "nccl-tests-config"))
sys.dont_write_bytecode = True
from nccl_tests_output import RANK, Run, Unusable  # noqa: E402

OUT_OF_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)\s+(\w+)")
WITHOUT_MPI = ("nccl-tests was built without MPI, so each process was a run of its own; "
               "build it with make MPI=1")


def fault_of_ranks(lines, ranks):
    seen = [int(match.group(1)) for match in map(RANK.match, lines) if match]
    if len(seen) > 1 and set(seen) == {0}:
        return WITHOUT_MPI
    if sorted(seen) != list(range(ranks)):
        return f"it names ranks {seen}, not 0 to {ranks - 1}"
    return None


def fault_of_rows(rows):
    for row in rows:
        for part in (row.out_of_place, row.in_place):
            if part.wrong is None:
                return f"{row.size} bytes were not checked (-c 1 does that)"
            if part.wrong:
                return f"{row.size} bytes: {part.wrong} wrong elements"
    return None


def judge(path, ranks):
    """(is it right, a sentence)"""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    found = fault_of_ranks(lines, ranks)
    if found:
        return False, found
    try:
        rows = Run(path).rows
    except Unusable as error:
        return False, str(error).removeprefix(f"{path}: ")
    found = fault_of_rows(rows.values())
    if found:
        return False, found
    for match in filter(None, map(OUT_OF_BOUNDS.match, lines)):
        if match.group(2) != "OK":
            return False, f"it counts {match.group(1)} wrong values"
    return True, f"{len(rows)} sizes"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    is_right, sentence = judge(arguments[0], int(arguments[1]))
    print(f"right, {sentence}" if is_right else f"WRONG: {sentence}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
