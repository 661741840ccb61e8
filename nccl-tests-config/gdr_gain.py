#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does GPUDirect bring? Compares two runs of nccl-tests, one with it and one without.

Takes the two outputs as they are, NCCL's log lines among them. The field's rule of thumb: with
GPUDirect the bus bandwidth of large messages is up by more than 30 %, and the latency of small ones
down by more than 50 %.

Usage: gdr_gain.py WITH WITHOUT
Exit status: 0 both hold; 1 one does not, data was wrong, or the runs were not what they should be;
2 they cannot be read or compared.
"""

import math
import re
import sys

LARGE = 8 << 20  # bytes from which a run is about bandwidth
SMALL = 8 << 10  # bytes up to which it is about latency
BANDWIDTH_GAIN = 0.30
LATENCY_GAIN = 0.50

# size count type redop root, then time algbw busbw #wrong, out of place and in place
COLUMNS = 13
ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]\w*\s+\S+\s+-?\d+\s")
PATH = re.compile(r"\bvia NET/\S+?/\d+(/GDRDMA)?")


class Unusable(Exception):
    """A sentence for people: what, why, and what to do."""


class Run:
    def __init__(self, path):
        self.path = path
        self.rows = {}  # by what was run and its size: (microseconds, GB/s)
        self.wrong = 0
        self.is_verified = True
        self.is_finished = False
        self.paths = 0  # network paths in NCCL's log
        self.direct_paths = 0
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for number, line in enumerate(file, 1):
                    self.read(line, f"{path}:{number}")
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}; name the two outputs of nccl-tests") from error
        if not self.rows:
            raise Unusable(f"{path}: no row of results in it; is it the output of all_reduce_perf?")
        if not self.is_finished:
            raise Unusable(f"{path}: it breaks off before its last line (# Avg bus bandwidth); "
                           "the run died, or the file was cut")

    def read(self, line, place):
        if line.startswith("# Avg bus bandwidth"):
            self.is_finished = True
        for found in PATH.finditer(line):
            self.paths += 1
            self.direct_paths += found.group(1) is not None
        if ROW.match(line):
            self.read_row(line.split(), place)

    def read_row(self, words, place):
        if len(words) != COLUMNS:
            raise Unusable(f"{place}: {len(words)} columns, not {COLUMNS}; two processes wrote into one "
                           "line? Write each rank's output to a file of its own")
        size, kind = int(words[0]), tuple(words[2:5])
        if (kind, size) in self.rows:
            raise Unusable(f"{place}: {size} bytes are there twice; give the output of one run")
        self.rows[kind, size] = (positive(words[5], place), positive(words[7], place, zero=True))
        for wrong in (words[8], words[12]):
            if wrong == "N/A":
                self.is_verified = False
            else:
                self.wrong += positive(wrong, place, zero=True) > 0


def positive(word, place, zero=False):
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if math.isfinite(number) and (number > 0 or (zero and number == 0)):
        return number
    raise Unusable(f"{place}: {word} is no number that a run can have")


def mean_ratio(pairs):
    return math.exp(sum(math.log(a / b) for a, b in pairs) / len(pairs))


def percent(ratio):
    return f"{100 * (ratio - 1):+.0f} %"


def print_table(direct, staged, common):
    print(f"{'size':>12} {'time':>10} {'without':>10} {'':>7} {'busbw':>9} {'without':>9}")
    print(f"{'(B)':>12} {'(us)':>10} {'(us)':>10} {'':>7} {'(GB/s)':>9} {'(GB/s)':>9}")
    for key in common:
        (time, busbw), (time_without, busbw_without) = direct.rows[key], staged.rows[key]
        # Below that, two decimals say nothing.
        gain = percent(busbw / busbw_without) if min(busbw, busbw_without) >= 1 else ""
        print(f"{key[1]:>12} {time:>10.1f} {time_without:>10.1f} {percent(time / time_without):>7} "
              f"{busbw:>9.2f} {busbw_without:>9.2f} {gain:>7}".rstrip())


def bandwidth_verdict(direct, staged, common):
    """(does it hold, what to say of it)"""
    pairs = [(direct.rows[key][1], staged.rows[key][1]) for key in common if key[1] >= LARGE]
    pairs = [pair for pair in pairs if min(pair) > 0]
    if not pairs:
        return False, f"bandwidth: not measured; run sizes of {LARGE >> 20} MiB and more (-e 256M)"
    ratio = mean_ratio(pairs)
    return ratio > 1 + BANDWIDTH_GAIN, (
        f"bandwidth from {LARGE >> 20} MiB on: {percent(ratio)} (wanted: more than "
        f"+{100 * BANDWIDTH_GAIN:.0f} %)")


def latency_verdict(direct, staged, common):
    pairs = [(direct.rows[key][0], staged.rows[key][0]) for key in common if 0 < key[1] <= SMALL]
    if not pairs:
        return False, f"latency: not measured; run sizes up to {SMALL >> 10} KiB (-b 8)"
    ratio = mean_ratio(pairs)
    return ratio < 1 - LATENCY_GAIN, (
        f"latency up to {SMALL >> 10} KiB: {percent(ratio)} (wanted: less than "
        f"-{100 * LATENCY_GAIN:.0f} %)")


def faults(direct, staged):
    """What makes a comparison worthless, whatever the numbers are."""
    for run in (direct, staged):
        if run.wrong:
            yield f"{run.path}: wrong data in {run.wrong} of its results; speed counts once that is right"
    if direct.paths and not direct.direct_paths:
        yield (f"{direct.path}: NCCL's log shows {direct.paths} network paths, none with GDRDMA: "
               "GPUDirect was not used (NCCL_NET_GDR_LEVEL=SYS tries it everywhere)")
    if staged.direct_paths:
        yield (f"{staged.path}: NCCL's log shows GDRDMA on {staged.direct_paths} network paths: "
               "run it with NCCL_NET_GDR_LEVEL=LOC")


def compare(direct, staged):
    common = sorted(direct.rows.keys() & staged.rows.keys())
    if not common:
        raise Unusable(f"{direct.path} and {staged.path} have no size, type and operation in common; "
                       "run both with the same options")
    print_table(direct, staged, common)
    print()
    left_out = len(direct.rows.keys() ^ staged.rows.keys())
    if left_out:
        print(f"left out: {left_out} results that only one run has")
    if not (direct.is_verified and staged.is_verified):
        print("the data was not checked (-c 1 does)")
    broken = list(faults(direct, staged))
    for fault in broken:
        print(fault)
    verdicts = [bandwidth_verdict(direct, staged, common), latency_verdict(direct, staged, common)]
    for _, words in verdicts:
        print(words)
    holds = not broken and all(good for good, _ in verdicts)
    print("GPUDirect pays as it should" if holds else "GPUDirect does not pay as it should")
    return 0 if holds else 1


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return compare(Run(sys.argv[1]), Run(sys.argv[2]))
    except Unusable as reason:
        print(reason, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
