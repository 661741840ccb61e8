#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests scripts/select_tests.py in this build folder: what scripts/test installs and builds for some tests.

Usage: select_tests_test.py FOLDER"""

import pathlib
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "select_tests.py"
FOLDER = sys.argv.pop()
QUICK = ("--without", "slow", "--without", "long", "--without", "by-name", "--without", "foreign")


def select(*arguments):
    """The output, by the first word of each line."""
    done = subprocess.run([sys.executable, SCRIPT, FOLDER, "plain", *arguments], stdout=subprocess.PIPE,
                          check=True, text=True)
    found = {"test": [], "target": [], "group": []}
    for line in done.stdout.splitlines():
        word, name = line.split()[:2]
        found.setdefault(word, []).append(name)
    return found


class SelectTests(unittest.TestCase):
    def test_a_test_that_needs_little_gets_little(self):
        found = select("base_result")
        self.assertEqual(found["test"], ["base_result"])
        self.assertEqual(found["target"], ["tests/plugin/unit/base_result_test"])
        self.assertEqual(found["group"], [])

    def test_packages_come_with_the_tests_that_need_them(self):
        self.assertEqual(select("vm-faults")["group"], ["vm"])
        self.assertEqual(select("deploy_slurm")["group"], ["deploy"])
        self.assertEqual(select("foreign-write", "topo_files")["group"], ["foreign", "tools"])

    def test_the_quick_loop_needs_no_machine_to_emulate_and_builds_what_it_runs(self):
        found = select("--needed", *QUICK)
        self.assertNotIn("vm", found["group"])
        self.assertNotIn("foreign", found["group"])
        self.assertNotIn("deploy", found["group"])
        self.assertLess(set(found["target"]), set(select(*QUICK)["target"]))

    def test_nothing_counts_as_changed_where_git_is_missing(self):
        done = subprocess.run([sys.executable, SCRIPT.with_name("changes.py"), "turn"], stdout=subprocess.PIPE,
                              check=True, text=True, env={"PATH": "/nowhere"})
        self.assertEqual(done.stdout, "0\n")


if __name__ == "__main__":
    unittest.main()
