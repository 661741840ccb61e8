#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that the plugin executes for a message: at both ends, in all threads.
Functions that the plugin calls in other libraries count, too; the verbs library and the measuring
program do not.

  bench/cost/cost.py [--abi 8,12] [--bytes 8,524288] [--rails 1,2,4] [--keep FOLDER] [--check] [BUILD]

Runs BUILD/bench/cost/cost under callgrind, over nullverbs. Then it prints the same for connections
over several rails, with messages that are too small to be split, and how many work requests, doorbells
and completions the sender needs. Fails if a payload is wrong, and with --check also if a figure of one
rail misses its goal, or if the sender needs more than one of each. --keep leaves callgrind's files for
callgrind_annotate."""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

from callgrind import Counts

# NCCL 2.30.7's built-in transport, measured the same way: instructions for each message, or call.
THEIRS = {
    "one at a time": 1216,
    "window of 8": 1237,
    "batches of 8": 1100,
    "groups of 8": 572,
    "isend without credit": 66,
    "test that finds nothing": 95,
}
GOAL, HOPE = 1 / 2, 1 / 3
# Messages that are too small to be split among several rails.
UNSPLIT = [8, 64 << 10]
PER_MESSAGE = ["work requests", "doorbells", "completions"]
SKIPPED = 77


def measure(build, plugin, abi, sizes, folder, rails=1):
    """[(facts printed by the program, Counts)] for each pattern, and the program's last line."""
    program = os.path.join(build, "bench/cost/cost")
    verbs = os.path.join(build, "tests/support/nullverbs/libibverbs.so")
    files = os.path.join(folder, f"callgrind.v{abi}.{rails}")
    command = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={files}",
               program, plugin, verbs, str(abi), *map(str, sizes)]
    environment = dict(os.environ)
    if rails > 1:
        environment.update(BEELINE_RAILS=str(rails), NULLVERBS_DEVICES=str(rails))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"cost.py: the program failed ({done.returncode})")
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    dumps = {}
    for path in glob.glob(files + ".*"):
        counts = Counts(path, os.path.realpath(plugin), os.path.realpath(verbs), "cost")
        dumps[counts.label] = counts
    return [(fact, dumps[fact["label"]]) for fact in facts[:-1]], facts[-1]


def print_figures(results, abi):
    print(f"\nInstructions for each message, both ends, through v{abi}\n")
    print(f"  {'':<26}{'bytes':>8}{'ours':>9}{'theirs':>9}{'ratio':>8}   goal: 1/2     hope: 1/3")
    for fact, counts in results:
        ours = counts.total() / fact["count"]
        theirs = THEIRS[fact["pattern"]]
        ratio = ours / theirs
        words = ["met" if ratio <= goal else f"missed by {ours - goal * theirs:.0f}"
                 for goal in (GOAL, HOPE)]
        print(f"  {fact['pattern']:<26}{fact['bytes']:>8}{ours:>9.1f}{theirs:>9}{ratio:>8.3f}"
              f"   {words[0]:<14}{words[1]}")


def print_split(results, top):
    sums, columns = {}, []
    for fact, counts in results:
        each = {}
        for name, cost in counts.split().items():
            each[name] = cost / fact["count"]
            sums[name] = sums.get(name, 0) + each[name]
        columns.append(each)
    heads = [fact["pattern"].split()[0] for fact, _ in results]
    print(f"\n  By function, {results[0][0]['bytes']} bytes; [library]: with everything it calls\n")
    print("  " + f"{'':<48}" + "".join(f"{head:>9}" for head in heads))
    names = sorted(sums, key=sums.get, reverse=True)
    for name in names[:top]:
        print(f"  {name[:47]:<48}" + "".join(f"{each.get(name, 0):>9.1f}" for each in columns))
    rest = [sum(each.get(name, 0) for name in names[top:]) for each in columns]
    if any(rest):
        print(f"  {'all others':<48}" + "".join(f"{cost:>9.1f}" for cost in rest))


def print_verbs(results):
    print("\n  Calls of the verbs library, for each message\n")
    keys = ["post_send", "send_wrs", "post_recv", "recv_wrs", "polls", "empty_polls",
            "completions", "empty_tests", "empty_sends", "empty_receives"]
    print("  " + f"{'':<26}" + "".join(f"{key:>14}" for key in keys))
    for fact, _ in results:
        print(f"  {fact['pattern']:<26}" + "".join(f"{fact[key]:>14.3f}" for key in keys))


# The calls of the measuring program are all calls of the plugin except those of its own threads.
def print_threads(results):
    other = max(abs(c.total() + c.in_verbs - c.inclusive) / f["count"] for f, c in results)
    print(f"\n  In threads other than the calling one: at most {other:.1f} for each message")


def report(build, plugin, abi, sizes, folder, top):
    results, ending = measure(build, plugin, abi, sizes, folder)
    print_figures(results, abi)
    for size in sizes:
        print_split([r for r in results if r[0]["bytes"] == size], top)
    print_verbs([r for r in results if r[0]["bytes"] == sizes[0]])
    print_threads(results)
    hints = ", ".join(f"{count} {what}" for what, count in ending["hints"].items())
    print(f"  Hints given to the device: {hints}; work that failed: {ending['failures']}")
    print("  Every payload was compared.")
    return all(c.total() / f["count"] <= GOAL * THEIRS[f["pattern"]] for f, c in results)


def report_rails(build, plugin, abi, counts, folder):
    """Prints the cost over several rails. True if the sender needs one of each for every message."""
    found = {rails: measure(build, plugin, abi, UNSPLIT, folder, rails) for rails in counts}
    print(f"\nMessages that are not split, by the number of rails, through v{abi}\n")
    print(f"  {'instructions, both ends':<26}{'bytes':>8}" + "".join(f"{rails:>9}" for rails in counts))
    for row, (fact, _) in enumerate(found[counts[0]][0]):
        costs = [found[rails][0][row][1].total() / fact["count"] for rails in counts]
        print(f"  {fact['pattern']:<26}{fact['bytes']:>8}" + "".join(f"{cost:>9.1f}" for cost in costs))
    print("\n  At the sender, one at a time; the goal is 1 of each\n")
    for row, size in enumerate(UNSPLIT):
        for what in PER_MESSAGE:
            each = [found[rails][1]["sender"][row][what] for rails in counts]
            print(f"  {what:<26}{size:>8}" + "".join(f"{count:>9.3f}" for count in each))
    return all(sender[what] == 1 for _, ending in found.values() for sender in ending["sender"]
               for what in PER_MESSAGE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--plugin", help="instead of the build's")
    parser.add_argument("--abi", default="12,8", help="versions, default 12,8")
    parser.add_argument("--bytes", default="8,524288", help="sizes, default 8,524288")
    parser.add_argument("--rails", default="1,2,4", help="numbers of rails, default 1,2,4; 0: not")
    parser.add_argument("--top", type=int, default=20, help="functions shown, default 20")
    parser.add_argument("--check", action="store_true", help="fail if a figure misses its goal")
    parser.add_argument("--keep", help="folder for callgrind's files")
    args = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("cost.py: valgrind is not installed (package valgrind): nothing is measured")
        return SKIPPED
    build = os.path.abspath(args.build)
    plugin = os.path.abspath(args.plugin or f"{build}/plugin/abi/libnccl-net-beeline.so")
    sizes = [int(size) for size in args.bytes.split(",")]
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
        for old in glob.glob(os.path.join(args.keep, "callgrind.v*")):
            os.remove(old)
    with tempfile.TemporaryDirectory() as folder:
        met = [report(build, plugin, int(abi), sizes, args.keep or folder, args.top)
               for abi in args.abi.split(",")]
        counts = [int(count) for count in args.rails.split(",") if count != "0"]
        if counts:
            met.append(report_rails(build, plugin, int(args.abi.split(",")[0]), counts, args.keep or folder))
    return 1 if args.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
