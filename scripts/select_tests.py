# SPDX-License-Identifier: Apache-2.0
"""Selects the tests of a configured build folder that this commit runs, and the targets that they need.

Usage: select_tests.py FOLDER LANE [--without SUITE]... [--rotate] [--needed] [NAME...]

Prints lines:
  test NAME             a test to run
  group NAME            a group of packages that the tests need, as named in scripts/lib.sh
  target FILE           a target that ninja has to build; the plain lane builds all, unless --needed
  later NAME WHEN       a test that this commit does not run; only with --rotate

With names, it selects only these tests, whatever their suites. An unknown name is an error.
"""

import argparse
import collections
import difflib
import fnmatch
import json
import pathlib
import sys

import changes

SANITIZERS = ("asan", "tsan")
# The checks that are spread over commits: a suite, or the name of a test; the lanes; the number of commits
# after which all have run; and the folders whose changes make it run at once. Those with the same lanes and
# number of commits run one after another.
ROTATION = (
    # Those that take minutes, of which no commit runs two. tests/mutations/run knows that it has 4 of 13.
    ("mutations", ("plain",), 13, ("tests/mutations/",)),
    ("vm-boot-1", ("plain",), 13, ("scripts/vm", "tests/vm/")),
    ("vm-boot-2", ("plain",), 13, ("scripts/vm", "tests/vm/")),
    ("vm-boot-3", ("plain",), 13, ("scripts/vm", "tests/vm/")),
    ("mutations", ("plain",), 13, ("tests/mutations/",)),
    ("package-roots", ("plain",), 13, ("common/old_glibc/", "scripts/packaging/", "tests/release/packages/")),
    ("vm-boot-4", ("plain",), 13, ("scripts/vm", "tests/vm/")),
    ("mutations", ("plain",), 13, ("tests/mutations/",)),
    ("vm-boot-5", ("plain",), 13, ("scripts/vm", "tests/vm/")),
    ("plugin_only", ("plain",), 13, ("meson.build", "plugin/abi/meson.build", "tests/release/packages/")),
    ("mutations", ("plain",), 13, ("tests/mutations/",)),
    ("vm-boot-6", ("plain",), 13, ("scripts/vm", "tests/vm/")),
    ("packages", ("plain",), 13, ("nccl-tests-config/", "scripts/bench", "scripts/package", "tests/release/packages/")),
    ("fuzz-wire", ("plain",), 3, ("plugin/wire/", "plugin/memory/", "tests/fuzz/")),
    ("fuzz-topology", ("plain",), 3, ("topology/", "tests/fuzz/")),
    *((f"foreign-{group}", ("plain",), 3, ("softnic/", "tests/beds/fabric/"))
      for group in ("verbs-utils", "write", "send", "read", "latency", "events", "atomic", "shared", "ucx")),
    ("soak", ("plain",), 3, ("tests/beds/fabric/",)),
    # In an order in which the commits take about as long.
    ("perf-roce-large", ("plain",), 3, ("softnic/", "tests/beds/fabric/")),
    ("deploy_mpirun", ("plain",), 3, ("docs/deploy/", "tests/release/deploy/")),
    ("perf-ib-large", ("plain",), 3, ("softnic/", "tests/beds/fabric/")),
    ("fault_shared_kill", ("plain",), 3, ("softnic/", "tests/beds/fault/")),
    ("deploy_slurm", ("plain",), 3, ("docs/deploy/", "tests/release/deploy/")),
    ("fault_kill_points", ("plain",), 3, ("softnic/", "tests/beds/fault/")),
    # The longest tests of these lanes.
    *((f"contract_{subject}", SANITIZERS, 3, ()) for subject in ("close", "recovery", "refusal", "vdevice")),
    ("contract_slow", SANITIZERS, 5, ("tests/plugin/contract/",)),
    ("contract-ib", SANITIZERS, 5, ("tests/plugin/contract/",)),
    ("softnic_soak", SANITIZERS, 5, ("softnic/",)),
    ("softnic_fabric_scale", SANITIZERS, 5, ("softnic/",)),
    ("vm-link-deleted", SANITIZERS, 5, ("tests/vm/",)),
    ("gpu_check", SANITIZERS, 5, ("tools/gpu_check/", "tests/tools/gpu_check/")),
)
# What the lanes of sanitizers compile and run in one commit of as many as there are groups: the compiler takes most of
# the time of these lanes. The tests of the plugin are in each commit.
SANITIZED_IN_TURN = (
    # The tools, and what reads a machine's topology.
    (("doctor*", "perf_*", "export_*", "hang_*", "replay_*", "top_*", "topo_*", "topology*", "conformance_*"),
     ("tools/", "topology/", "tests/tools/", "tests/beds/conformance/")),
    # The stand-ins for a CUDA driver and for a verbs library that does nothing.
    (("softgpu_*", "steady_*"),
     ("softnic/gpu/", "tests/beds/softgpu/", "tests/plugin/steady/", "tests/support/nullverbs/")),
    # The software NIC. Tests of the plugin run on it in each commit.
    (("softnic_*",), ("softnic/", "tests/beds/softnic/")),
)


# Programs with one thread, in which TSan cannot find anything. `scripts/test --long` runs them all the same.
ONE_THREAD = {
    "config", "device", "gdr", "gpu_check", "memory", "nccl_abi", "recovery", "runtime", "transfer_scheduler", "verbs",
    "wire",
    "base_clock", "base_fd", "base_natural_order", "base_result", "perf_unit", "perf_memory",
    "softnic_unit", "topology", "topology_read", "topology_render", "topo_command_line", "topo_files",
    "perf_clean", "perf_command_line", "perf_far", "perf_faults", "doctor", "doctor_peers_unit",
}


# Suites whose tests need additional packages.
GROUPS = ("tools", "foreign", "mutation", "packages", "package-roots", "steady", "deploy", "vm")


def introspect(folder, what):
    """The output of `meson introspect`, which meson keeps in files."""
    return json.loads((pathlib.Path(folder) / "meson-info" / f"intro-{what}.json").read_text(encoding="utf-8"))


def suites_of(test):
    return {suite.rpartition(":")[2] for suite in test["suite"]}


def chosen_by_name(tests, names):
    known = {test["name"] for test in tests}
    for name in names:
        if name not in known:
            near = ", ".join(difflib.get_close_matches(name, known, 3)) or "none; meson test --list shows all"
            sys.exit(f"this lane has no test '{name}'; similar names: {near}")
    return [test for test in tests if test["name"] in names]


def not_due(lane):
    """The suites and tests of ROTATION that this commit omits in this lane, with the number of commits."""
    changed = changes.changed_on_branch()
    places = collections.Counter()
    due = set()
    spread = {}
    for what, lanes, every, folders in ROTATION:
        place = places[lanes, every]
        places[lanes, every] += 1
        if lane not in lanes:
            continue
        spread[what] = every
        if changes.is_due(place, every) or any(name.startswith(folders) for name in changed):
            due.add(what)
    return {what: every for what, every in spread.items() if what not in due}


def patterns_in_turn(lane):
    """Those of SANITIZED_IN_TURN that this commit omits in this lane."""
    if lane not in SANITIZERS:
        return []
    changed = changes.changed_on_branch()
    # The two lanes have different turns, so that no commit has the longest of both.
    first = SANITIZERS.index(lane)
    return [pattern for turn, (patterns, folders) in enumerate(SANITIZED_IN_TURN, first) for pattern in patterns
            if not changes.is_due(turn, len(SANITIZED_IN_TURN))
            and not any(name.startswith(folders) for name in changed)]


def omitted_tests(tests, lane):
    """Pairs of a test that this commit omits, and the commits or the option that run it."""
    resting = not_due(lane)
    patterns = patterns_in_turn(lane)
    for test in tests:
        if any(fnmatch.fnmatch(test["name"], pattern) for pattern in patterns):
            yield test, f"1 commit of {len(SANITIZED_IN_TURN)}"
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
        for test, when in omitted_tests(tests, wanted.lane):
            later[test["name"]] = when
            print("later", test["name"], when)
    chosen = [test for test in tests if test["name"] not in later]
    # Meson runs the tests in this order. A test that is not parallel waits for all tests before it, and
    # all tests after it wait for it.
    chosen.sort(key=lambda test: (not test["is_parallel"], -test["priority"]))
    for test in chosen:
        print("test", test["name"])
    for group in sorted({suite for test in chosen for suite in suites_of(test)}.intersection(GROUPS)):
        print("group", group)
    needed = {target for test in chosen for target in test["depends"]}
    unneeded = {target for test in tests for target in test["depends"]} - needed
    # The plain lane builds everything except targets of omitted tests, to prove that everything compiles.
    whole = wanted.lane == "plain" and not wanted.names and not wanted.needed
    folder = pathlib.Path(wanted.folder).resolve()
    for target in introspect(wanted.folder, "targets"):
        is_extra = whole and target["build_by_default"] and target["id"] not in unneeded
        if is_extra or target["id"] in needed:
            for file in target["filename"]:
                print("target", pathlib.Path(file).relative_to(folder))


main()
