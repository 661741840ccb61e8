# SPDX-License-Identifier: Apache-2.0
"""Prints the times of scripts/test: a row for each lane, and the ten slowest steps.

Reads lines of "SECONDS LANE: STEP", where "test NAME" is a part of the step "tests".
"""

import collections
import sys

SLOWEST = 10
STEPS = ("configure", "build", "tests", "checks")


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}" if seconds else "-"


def main():
    lanes = collections.defaultdict(lambda: dict.fromkeys(STEPS, 0.0))
    slow = []
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            seconds, _, words = line.strip().partition(" ")
            lane, _, step = words.partition(": ")
            if step in STEPS:
                lanes[lane][step] += float(seconds)
            if step not in ("tests", "configure"):
                slow.append((float(seconds), words))
            if lane == "lint":
                lanes[lane]["checks"] += float(seconds)

    print(f"{'lane':<12}" + "".join(f"{step:>11}" for step in STEPS) + f"{'in all':>11}")
    total = dict.fromkeys(STEPS, 0.0)
    for lane, times in lanes.items():
        print(f"{lane:<12}" + "".join(f"{minutes(times[step]):>11}" for step in STEPS) +
              f"{minutes(sum(times.values())):>11}")
        for step in STEPS:
            total[step] += times[step]
    print(f"{'all':<12}" + "".join(f"{minutes(total[step]):>11}" for step in STEPS) +
          f"{minutes(sum(total.values())):>11}")
    print("\nThe ten slowest steps:")
    for seconds, words in sorted(slow, reverse=True)[:SLOWEST]:
        print(f"{minutes(seconds):>8}  {words}")


main()
