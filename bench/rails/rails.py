#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of the sum of several unequal rails one connection uses.

  bench/rails/rails.py [--runs 3] [--seconds 3] [--only 400+100] [BUILD]
  bench/rails/rails.py --slow [--only 250+250] [--svg FILE] [BUILD]

All ports claim the same speed; softnic shapes each one. `beeline perf stream` compares received
bytes; if one is wrong, the script fails. With --slow, one rail is slowed to a quarter in the middle of
the stream and restored later, and a picture shows the rate of each rail over time."""

import argparse
import os
import statistics
import sys
import tempfile

import slow_rail
from test_bed import Failed, TestBed

RAILS = ["400", "400+400", "400+100", "400+100+100+50", "+".join(["100"] * 8)]
# bytes, messages in flight, goal as a share of the sum
WORK = [(4 << 20, 8, 0.95), (512 << 10, 4, 0.90)]


def parse_rails(text):
    rates = [float(rate) for rate in text.split("+")]
    if not 1 <= len(rates) <= 8 or min(rates) <= 0:
        raise ValueError(text)
    return [int(rate) if rate.is_integer() else rate for rate in rates]


def equal_split(rates):
    """The share of the sum if every message is split into equal parts: the slowest rail sets the pace."""
    return len(rates) * min(rates) / sum(rates)


def short(text):
    """"8 x 100" instead of eight equal numbers."""
    parts = text.split("+")
    return f"{len(parts)} x {parts[0]}" if len(parts) > 2 and len(set(parts)) == 1 else text


def head():
    return (f"  {'rails (MB/s)':<18}{'message x in flight':<22}{'MB/s':>8}{'share':>8}"
            f"{'lowest':>8}{'highest':>9}{'equal split':>13}{'goal':>7}")


def row(text, size, depth, goal, measured):
    rates = parse_rails(text)
    share = statistics.median(measured) / sum(rates)
    message = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
    verdict = "the ceiling" if len(rates) == 1 else f"{goal:.2f}  " + ("met" if share >= goal else "missed")
    return (f"  {short(text):<18}{f'{message} x {depth}':<22}{statistics.median(measured):>8.1f}{share:>8.3f}"
            f"{min(measured) / sum(rates):>8.3f}{max(measured) / sum(rates):>9.3f}"
            f"{equal_split(rates):>13.2f}   {verdict}")


def measure(bed, text, size, depth, runs, seconds):
    how_long = ["--seconds", f"{seconds:g}"]
    return [bed.stream(parse_rails(text), size, depth, how_long).finish() for _ in range(runs)]


def table(bed, chosen, runs, seconds):
    print(f"Share of the sum of the rails, median of {runs} runs of {seconds:g} s; load of the machine "
          f"{os.getloadavg()[0]:.1f}\n\n{head()}", flush=True)
    for text in chosen:
        for size, depth, goal in WORK:
            print(row(text, size, depth, goal, measure(bed, text, size, depth, runs, seconds)), flush=True)
    print("\n  One rail shows what this machine can measure at most. equal split: number of rails x the slowest"
          "\n  rail / the sum, which is what NCCL's built-in transport can reach.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--runs", type=int, default=3, help="of each case, default 3")
    parser.add_argument("--seconds", type=float, default=3, help="of each run, default 3")
    parser.add_argument("--only", help="rails in MB/s, such as 400+100, instead of the usual ones")
    parser.add_argument("--slow", action="store_true", help="slow a rail down in the middle of a stream")
    parser.add_argument("--rail", type=int, default=0, help="with --slow: which one, default 0")
    parser.add_argument("--svg", default="rails.svg", help="with --slow: the picture, default rails.svg")
    args = parser.parse_args()
    try:
        chosen = [args.only] if args.only else RAILS
        rates = parse_rails(args.only or "250+250")
    except ValueError:
        parser.error(f"--only {args.only}: write one to eight rates in MB/s, such as 400+100")
    if args.runs < 1 or not 0 <= args.rail < len(rates):
        parser.error("--runs must be at least 1, and --rail one of the rails")
    with tempfile.TemporaryDirectory() as folder:
        try:
            bed = TestBed(args.build, folder)
            if args.slow:
                slow_rail.report(bed, rates, args.rail, args.svg)
            else:
                table(bed, chosen, args.runs, args.seconds)
        except Failed as reason:
            print(f"rails.py: {reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
