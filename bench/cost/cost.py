#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a message costs, beside NCCL's built-in transport: the instructions that the plugin executes
at both ends, in all threads; its posts, polls and completions; and, with in_turn.py, its misses of the first
cache. Functions that the plugin calls in other libraries count, too; the verbs library and the measuring
program do not.

  bench/cost/cost.py [--abi 8,12] [--bytes 8,524288] [--rails 1,2,4] [--prices 100,30] [--keep FOLDER]
                     [--check] [BUILD]

Runs BUILD/bench/cost/cost under callgrind, over nullverbs, and without callgrind for the times. Then it prints
the same for connections over several rails, with messages that are too small to be split. Fails if a payload is
wrong, and with --check also if a figure misses its goal. --keep leaves callgrind's files for
callgrind_annotate."""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import in_turn
from callgrind import Counts

# What a row of the table counts: its name here, and in the program's output.
INSTRUCTIONS = "instructions"
VERBS = {
    "calls that post sends": "post_send",
    "completions of sends": "send_completions",
    "posted receives": "recv_wrs",
    "polls": "polls",
    "completions": "completions",
}
# NCCL 2.30.7's built-in transport, measured the same way with 8 bytes: for each message, or call. What is not
# here was not measured.
THEIRS = {
    "one at a time": {INSTRUCTIONS: 1216, "calls that post sends": 2, "completions of sends": 1,
                      "posted receives": 1, "polls": 2, "completions": 2},
    "window of 8": {INSTRUCTIONS: 1237},
    "batches of 8": {INSTRUCTIONS: 1100},
    "groups of 8": {INSTRUCTIONS: 572, "calls that post sends": 0.25, "completions of sends": 0.125,
                    "completions": 0.25},
    "isend without credit": {INSTRUCTIONS: 66},
    "test that finds nothing": {INSTRUCTIONS: 95},
}
GOALS = {
    "one at a time": {INSTRUCTIONS: 405},
    "window of 8": {INSTRUCTIONS: 412},
    "batches of 8": {INSTRUCTIONS: 367},
    "groups of 8": {INSTRUCTIONS: 190, "calls that post sends": 0.3, "completions of sends": 0.3},
    "isend without credit": {INSTRUCTIONS: 22},
    "test that finds nothing": {INSTRUCTIONS: 32},
}
# So many more instructions, at most, through other versions than 12.
OTHER_VERSIONS = 5
# So many times the instructions of one rail, at most, over several.
RAILS_GOAL = 1.15
# Messages that are too small to be split among several rails.
UNSPLIT = [8, 64 << 10]
PER_MESSAGE = ["work requests", "doorbells", "completions"]
SKIPPED = 77


def verbs_of(build):
    return os.path.join(build, "tests/support/nullverbs/libibverbs.so")


def run(prefix, build, plugin, abi, sizes, environment):
    """What the program prints."""
    command = [*prefix, os.path.join(build, "bench/cost/cost"), plugin, verbs_of(build), str(abi),
               *map(str, sizes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"cost.py: the program failed ({done.returncode})")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(build, plugin, abi, sizes, folder, rails=1):
    """[(facts printed by the program, Counts)] for each pattern, and the program's last line."""
    verbs = verbs_of(build)
    files = os.path.join(folder, f"callgrind.v{abi}.{rails}")
    environment = dict(os.environ)
    if rails > 1:
        environment.update(BEELINE_RAILS=str(rails), NULLVERBS_DEVICES=str(rails))
    facts = run(["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={files}"],
                build, plugin, abi, sizes, environment)
    dumps = {}
    for path in glob.glob(files + ".*"):
        counts = Counts(path, os.path.realpath(plugin), os.path.realpath(verbs), "cost")
        dumps[counts.label] = counts
    return [(fact, dumps[fact["label"]]) for fact in facts[:-1]], facts[-1]


def print_row(name, ours, theirs, goal):
    """True if there is no goal, or it is met."""
    met = goal is None or round(ours, 1 if goal > 1 else 3) <= goal
    words = "" if goal is None else f"{goal:>8}  " + ("met" if met else "missed")
    their = "" if theirs is None else f"{theirs:>12}{ours / theirs:>8.2f}"
    print(f"  {name:<34}{ours:>10.{1 if ours > 9 else 3}f}{their:<20}{words}".rstrip())
    return met


def print_figures(results, abi, build, plugin):
    """True if every goal is met. Other sizes than 8 bytes have none."""
    print(f"\nFor each message, both ends, through v{abi}\n")
    print(f"  {'':<34}{'ours':>10}{'built-in':>12}{'ratio':>8}{'goal':>8}")
    met = True
    for fact, counts in results:
        pattern, is_small = fact["pattern"], fact["bytes"] == 8
        theirs, goals = THEIRS[pattern], GOALS[pattern] if is_small else {}
        print(f"  {pattern}, {fact['bytes']} bytes")
        goal = goals.get(INSTRUCTIONS)
        met &= print_row(f"  {INSTRUCTIONS}", counts.total() / fact["count"], theirs[INSTRUCTIONS],
                         goal and goal + (OTHER_VERSIONS if abi != 12 else 0))
        for name, key in VERBS.items() if is_small and fact["post_send"] else []:
            met &= print_row(f"  {name}", fact[key], theirs.get(name), goals.get(name))
    print("  misses of the first cache, 8 bytes")
    for comms, theirs in sorted(in_turn.THEIRS.items()):
        name = "one connection" if comms == 1 else f"{comms} connections in turn"
        met &= print_row(f"  {name}", in_turn.misses(build, plugin, comms), theirs, in_turn.GOAL.get(comms))
    return met


def print_times(build, plugin, abi, prices, rounds=9):
    """With a device that costs nothing, and with one that has these prices."""
    found = {}
    for _ in range(rounds):
        for price in ("0,0", prices):
            doorbell, completion = price.split(",")
            environment = dict(os.environ, NULLVERBS_DOORBELL_NS=doorbell, NULLVERBS_COMPLETION_NS=completion)
            for fact in run([], build, plugin, abi, [8], environment)[:-1]:
                found.setdefault((fact["pattern"], price), []).append(fact["ns"])
    doorbell, completion = prices.split(",")
    print(f"\n  Nanoseconds for each message of 8 bytes, medians of {rounds}, with the device's part. Priced:\n"
          f"  {doorbell} ns for a call that posts, {completion} ns for a completion\n")
    print(f"  {'':<34}{'free':>10}{'priced':>10}")
    for pattern in THEIRS:
        times = [statistics.median(found[pattern, price]) for price in ("0,0", prices)]
        print(f"  {pattern:<34}" + "".join(f"{ns:>10.0f}" for ns in times))


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


# The calls of the measuring program are all calls of the plugin except those of its own threads.
def print_threads(results):
    other = max(abs(c.total() + c.in_verbs - c.inclusive) / f["count"] for f, c in results)
    print(f"\n  In threads other than the calling one: at most {other:.1f} for each message")


def report(build, plugin, abi, sizes, folder, args):
    results, ending = measure(build, plugin, abi, sizes, folder)
    met = print_figures(results, abi, build, plugin)
    for size in sizes:
        print_split([r for r in results if r[0]["bytes"] == size], args.top)
    print_times(build, plugin, abi, args.prices)
    print_threads(results)
    hints = ", ".join(f"{count} {what}" for what, count in ending["hints"].items())
    print(f"  Hints given to the device: {hints}; work that failed: {ending['failures']}")
    print("  Every payload was compared.")
    return met


def report_rails(build, plugin, abi, counts, folder):
    """Prints the cost over several rails. True if every goal is met."""
    found = {rails: measure(build, plugin, abi, UNSPLIT, folder, rails) for rails in counts}
    print(f"\nMessages that are not split, by the number of rails, through v{abi}\n")
    print(f"  {'instructions, both ends':<26}{'bytes':>8}" + "".join(f"{rails:>9}" for rails in counts))
    met = True
    for row, (fact, _) in enumerate(found[counts[0]][0]):
        costs = [found[rails][0][row][1].total() / fact["count"] for rails in counts]
        line = f"  {fact['pattern']:<26}{fact['bytes']:>8}" + "".join(f"{cost:>9.1f}" for cost in costs)
        if counts[0] == 1 and len(counts) > 1:
            ratio = costs[-1] / costs[0]
            met &= ratio <= RAILS_GOAL
            line += f"   {ratio:.2f} x, goal {RAILS_GOAL}: {'met' if ratio <= RAILS_GOAL else 'missed'}"
        print(line)
    print("\n  At the sender, one at a time; the goal is 1 of each\n")
    for row, size in enumerate(UNSPLIT):
        for what in PER_MESSAGE:
            each = [found[rails][1]["sender"][row][what] for rails in counts]
            print(f"  {what:<26}{size:>8}" + "".join(f"{count:>9.3f}" for count in each))
    return met and all(sender[what] == 1 for _, ending in found.values() for sender in ending["sender"]
                       for what in PER_MESSAGE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--plugin", help="instead of the build's")
    parser.add_argument("--abi", default="12,8", help="versions, default 12,8")
    parser.add_argument("--bytes", default="8,524288", help="sizes, default 8,524288")
    parser.add_argument("--rails", default="1,2,4", help="numbers of rails, default 1,2,4; 0: not")
    parser.add_argument("--prices", default="100,30", help="nanoseconds for a call that posts, and for a "
                        "completion; default 100,30")
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
        met = [report(build, plugin, int(abi), sizes, args.keep or folder, args)
               for abi in args.abi.split(",")]
        counts = [int(count) for count in args.rails.split(",") if count != "0"]
        if counts:
            met.append(report_rails(build, plugin, int(args.abi.split(",")[0]), counts, args.keep or folder))
    return 1 if args.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
