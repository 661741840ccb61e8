#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages of 8 bytes on many comms in turn, over nullverbs: how often the plugin misses the first
cache for a message (callgrind's simulation), and the time of a message and of a test that finds
nothing. Several plugins are measured in turns; the times are medians.

  bench/cost/in_turn.py [--comms 1,64,512,4096] [--rounds 5] [--plugin FILE]... [BUILD]

Without --plugin, it measures that of BUILD."""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from callgrind import Counts

# NCCL 2.30.7's built-in transport: misses of the first cache for each message, by number of comms.
THEIRS = {1: 5.25, 64: 48}
GOAL = {64: 24}
# The simulated first cache: 48 KiB, 12 ways, lines of 64 bytes.
FIRST_CACHE = "--D1=49152,12,64"
SKIPPED = 77


def measure(build, plugin, comms, prefix=()):
    verbs = os.path.join(build, "tests/support/nullverbs/libibverbs.so")
    command = [*prefix, os.path.join(build, "bench/cost/in_turn"), plugin, verbs, "12", str(comms)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"in_turn.py: the program failed ({done.returncode})")
    return json.loads(done.stdout)


def misses(build, plugin, comms):
    """Of the plugin's own code and what it calls, without the verbs library, for each message."""
    verbs = os.path.join(build, "tests/support/nullverbs/libibverbs.so")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "callgrind")
        fact = measure(build, plugin, comms, ["valgrind", "--tool=callgrind", "--quiet", "--cache-sim=yes",
                                              FIRST_CACHE, f"--callgrind-out-file={file}"])
        for path in glob.glob(file + "*"):
            counts = Counts(path, os.path.realpath(plugin), os.path.realpath(verbs), "in_turn",
                            ("D1mr", "D1mw"))
            if counts.label == "in turn":
                return counts.total() / fact["messages"]
    sys.exit("in_turn.py: callgrind wrote no file for the messages")


def print_misses(build, plugins):
    print(f"\n  misses of the first cache for each message {'comms':>10}{'misses':>9}{'theirs':>9}   goal")
    for plugin in plugins:
        for comms in sorted(THEIRS):
            each = misses(build, plugin, comms)
            goal = GOAL.get(comms)
            word = "" if goal is None else f"{goal}: " + ("met" if each <= goal else "missed")
            print(f"  {plugin[-42:]:<44}{comms:>9}{each:>9.1f}{THEIRS[comms]:>9}   {word}")


def print_times(build, plugins, numbers, rounds):
    print(f"\n  nanoseconds, medians of {rounds} {'comms':>21}{'a message':>12}{'an empty test':>15}")
    for comms in numbers:
        found = {plugin: [] for plugin in plugins}
        for _ in range(rounds):
            for plugin in plugins:
                found[plugin].append(measure(build, plugin, comms))
        for plugin in plugins:
            message, test = (statistics.median(fact[what] for fact in found[plugin])
                             for what in ("message_ns", "test_ns"))
            print(f"  {plugin[-42:]:<44}{comms:>9}{message:>12.0f}{test:>15.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--plugin", action="append", help="measured instead of the build's")
    parser.add_argument("--comms", default="1,64,512,4096", help="numbers of comms, default 1,64,512,4096")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    plugins = args.plugin or [f"{build}/plugin/abi/libnccl-net-beeline.so"]
    print_times(build, plugins, [int(comms) for comms in args.comms.split(",")], args.rounds)
    if shutil.which("valgrind") is None:
        print("in_turn.py: valgrind is not installed (package valgrind): no misses are counted")
        return SKIPPED
    print_misses(build, plugins)
    return 0


if __name__ == "__main__":
    sys.exit(main())
