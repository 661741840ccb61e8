#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the gain from GPUDirect: compares two runs of nccl-tests, one with it and one without.

Takes the two outputs as they are, NCCL's log lines among them. The field's rule of thumb: with
GPUDirect the bus bandwidth of large messages is up by more than 30 %, and the latency of small ones
down by more than 50 %.

Usage: gdr_gain.py WITH WITHOUT
Exit status: 0 both hold; 1 one does not, data was wrong, or the runs were not what they should be;
2 they cannot be read or compared.
"""

import math
import sys

from nccl_tests_output import Run, Unusable

LARGE = 8 << 20  # bytes from which a run is about bandwidth
SMALL = 8 << 10  # bytes up to which it is about latency
BANDWIDTH_GAIN = 0.30
LATENCY_GAIN = 0.50


def mean_ratio(pairs):
    return math.exp(sum(math.log(a / b) for a, b in pairs) / len(pairs))


def time_us(run, key):
    return run.rows[key].out_of_place.time_us


def busbw(run, key):
    return run.rows[key].out_of_place.busbw


def percent(ratio):
    return f"{100 * (ratio - 1):+.0f} %"


def print_table(direct, staged, common):
    print(f"{'size':>12} {'time':>10} {'without':>10} {'':>7} {'busbw':>9} {'without':>9}")
    print(f"{'(B)':>12} {'(us)':>10} {'(us)':>10} {'':>7} {'(GB/s)':>9} {'(GB/s)':>9}")
    for key in common:
        time, time_without = time_us(direct, key), time_us(staged, key)
        bandwidth, bandwidth_without = busbw(direct, key), busbw(staged, key)
        # Below that, two decimals are too few.
        means_something = min(bandwidth, bandwidth_without) >= 1
        gain = percent(bandwidth / bandwidth_without) if means_something else ""
        print(f"{key[1]:>12} {time:>10.1f} {time_without:>10.1f} {percent(time / time_without):>7} "
              f"{bandwidth:>9.2f} {bandwidth_without:>9.2f} {gain:>7}".rstrip())


def bandwidth_verdict(direct, staged, common):
    """Returns (is as expected, text)."""
    pairs = [(busbw(direct, key), busbw(staged, key)) for key in common if key[1] >= LARGE]
    pairs = [pair for pair in pairs if min(pair) > 0]
    if not pairs:
        return False, f"bandwidth: not measured; run sizes of {LARGE >> 20} MiB and more (-e 256M)"
    ratio = mean_ratio(pairs)
    return ratio > 1 + BANDWIDTH_GAIN, (
        f"bandwidth from {LARGE >> 20} MiB on: {percent(ratio)} (expected: more than "
        f"+{100 * BANDWIDTH_GAIN:.0f} %)")


def latency_verdict(direct, staged, common):
    pairs = [(time_us(direct, key), time_us(staged, key)) for key in common if 0 < key[1] <= SMALL]
    if not pairs:
        return False, f"latency: not measured; run sizes up to {SMALL >> 10} KiB (-b 8)"
    ratio = mean_ratio(pairs)
    return ratio < 1 - LATENCY_GAIN, (
        f"latency up to {SMALL >> 10} KiB: {percent(ratio)} (expected: less than "
        f"-{100 * LATENCY_GAIN:.0f} %)")


def faults(direct, staged):
    """Faults that make the comparison invalid."""
    for run in (direct, staged):
        if run.wrong:
            yield f"{run.path}: wrong data in {run.wrong} of its results, so its speed is meaningless"
    if direct.log.paths and not direct.log.direct_paths:
        yield (f"{direct.path}: NCCL's log shows {direct.log.paths} network paths, none with GDRDMA: "
               "GPUDirect was not used (NCCL_NET_GDR_LEVEL=SYS tries it everywhere)")
    if staged.log.direct_paths:
        yield (f"{staged.path}: NCCL's log shows GDRDMA on {staged.log.direct_paths} network paths: "
               "run it with NCCL_NET_GDR_LEVEL=LOC")


def common_rows(direct, staged):
    common = sorted(direct.rows.keys() & staged.rows.keys())
    if not common:
        raise Unusable(f"{direct.path} and {staged.path} have no size, type and operation in common; "
                       "run both with the same options")
    return common


def verdict(direct, staged):
    """Prints whether GPUDirect brings the expected gain, and why. Returns 0 if it does."""
    common = common_rows(direct, staged)
    left_out = len(direct.rows.keys() ^ staged.rows.keys())
    if left_out:
        print(f"not compared: {left_out} results that only one run has")
    if not (direct.is_verified and staged.is_verified):
        print("the data was not checked (-c 1 does)")
    broken = list(faults(direct, staged))
    for fault in broken:
        print(fault)
    verdicts = [bandwidth_verdict(direct, staged, common), latency_verdict(direct, staged, common)]
    for _, words in verdicts:
        print(words)
    holds = not broken and all(good for good, _ in verdicts)
    print("the gain from GPUDirect is as expected" if holds else "the gain from GPUDirect is smaller than expected")
    return 0 if holds else 1


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        direct, staged = Run(sys.argv[1]), Run(sys.argv[2])
        print_table(direct, staged, common_rows(direct, staged))
        print()
        return verdict(direct, staged)
    except Unusable as reason:
        print(reason, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
