# SPDX-License-Identifier: Apache-2.0
"""Which tests of a configured build folder to run, and what has to be built for them.

Usage: select_tests.py FOLDER LANE [--without SUITE]... [--rotate] [--needed] [NAME...]

Prints lines:
  test NAME             to be run
  group NAME            of packages that these need, as scripts/lib.sh names them
  target FILE           what ninja has to build for these; the plain lane is built whole, unless --needed
  later NAME WHEN       not run by this commit. Only with --rotate

With names, only these tests, whatever their suites, and what these need. A name that is not known is
an error.
"""

import argparse
import collections
import difflib
import json
import pathlib
import sys

import changes

SANITIZERS = ("asan", "tsan")
# What takes turns: a suite, or else a test's name; in which lanes; how many commits it takes until all
# have had their turn; and the folders whose changes have it run at once. Those with the same lanes and
# number of commits have their turns one after another.
ROTATION = (
    ("fuzz-wire", ("plain",), 3, ("plugin/wire/", "plugin/memory/", "tests/fuzz/")),
    ("fuzz-topology", ("plain",), 3, ("topology/", "tests/fuzz/")),
    *((f"foreign-{group}", ("plain",), 3, ("softnic/", "tests/fabric/"))
      for group in ("verbs-utils", "write", "send", "read", "latency", "events", "atomic", "shared", "ucx")),
    *((f"vm-boot-{n}", ("plain",), 7, ("scripts/vm", "tests/vm/")) for n in range(1, 7)),
    ("contract_slow", SANITIZERS, 5, ("tests/contract/",)),
    ("contract-ib", SANITIZERS, 5, ("tests/contract/",)),
    ("softnic_soak", SANITIZERS, 5, ("softnic/",)),
    ("softnic_fabric_scale", SANITIZERS, 5, ("softnic/",)),
    ("vm-link-deleted", SANITIZERS, 5, ("tests/vm/",)),
    ("gpu_check", SANITIZERS, 5, ("tests/gpu/",)),
)


# TSan has nothing to say of programs with one thread. `scripts/test --long` asks it all the same.
ONE_THREAD = {
    "config", "device", "gdr", "gpu_check", "memory", "nccl_abi", "runtime", "transfer", "verbs", "wire",
    "base_clock", "base_fd", "base_natural_order", "base_result", "perf_unit", "perf_memory",
    "softnic_unit", "topology", "topology_read", "topology_render", "topo_command_line", "topo_files",
    "perf_clean", "perf_command_line", "perf_far", "perf_faults",
}


# Suites whose tests need packages that others do without.
GROUPS = ("tools", "foreign", "mutation", "steady", "vm")


def introspect(folder, what):
    """What `meson introspect` would say: meson keeps its answers in files."""
    return json.loads((pathlib.Path(folder) / "meson-info" / f"intro-{what}.json").read_text(encoding="utf-8"))


def suites_of(test):
    return {suite.rpartition(":")[2] for suite in test["suite"]}


def chosen_by_name(tests, names):
    known = {test["name"] for test in tests}
    for name in names:
        if name not in known:
            near = ", ".join(difflib.get_close_matches(name, known, 3)) or "meson test --list has all"
            sys.exit(f"no test of this lane is called '{name}'; near: {near}")
    return [test for test in tests if test["name"] in names]


def not_due(lane):
    """By suite or test that takes turns in this lane, and whose turn it is not: how many commits."""
    changed = changes.changed_on_branch()
    places = collections.Counter()
    found = {}
    for what, lanes, every, folders in ROTATION:
        place = places[lanes, every]
        places[lanes, every] += 1
        is_touched = any(name.startswith(folders) for name in changed)
        if lane in lanes and not is_touched and not changes.is_due(place, every):
            found[what] = every
    return found


def left_to_others(tests, lane):
    """Pairs of a test that this commit does not run, and a word on what does."""
    resting = not_due(lane)
    for test in tests:
        suites = suites_of(test)
        if lane == "tsan" and (test["name"] in ONE_THREAD or "steady" in suites):
            yield test, "--long"
        for what in resting.keys() & (suites | {test["name"]}):
            yield test, f"1 commit of {resting[what]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--rotate", action="store_true")
    parser.add_argument("--needed", action="store_true")
    parser.add_argument("folder")
    parser.add_argument("lane")
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args()

    tests = sorted(introspect(wanted.folder, "tests"), key=lambda test: test["name"])
    if wanted.names:
        tests = chosen_by_name(tests, wanted.names)
    else:
        tests = [test for test in tests if not suites_of(test).intersection(wanted.without)]
    later = {}
    if wanted.rotate:
        for test, when in left_to_others(tests, wanted.lane):
            later[test["name"]] = when
            print("later", test["name"], when)
    chosen = [test for test in tests if test["name"] not in later]
    # Meson runs them in the order in which it is told them. A test that wants to be alone waits for all
    # before it, and all behind it wait for it.
    chosen.sort(key=lambda test: (not test["is_parallel"], -test["priority"]))
    for test in chosen:
        print("test", test["name"])
    for group in sorted({suite for test in chosen for suite in suites_of(test)}.intersection(GROUPS)):
        print("group", group)
    needed = {target for test in chosen for target in test["depends"]}
    unneeded = {target for test in tests for target in test["depends"]} - needed
    # The plain lane builds all but what only others need: it proves that everything compiles.
    whole = wanted.lane == "plain" and not wanted.names and not wanted.needed
    folder = pathlib.Path(wanted.folder).resolve()
    for target in introspect(wanted.folder, "targets"):
        is_extra = whole and target["build_by_default"] and target["id"] not in unneeded
        if is_extra or target["id"] in needed:
            for file in target["filename"]:
                print("target", pathlib.Path(file).relative_to(folder))


main()
