#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `beeline` and `softnic` say to a mistake in the command line, and the width of their help.

Usage: command_line_test.py BEELINE [SOFTNIC]
"""
import re
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:]
del sys.argv[1:]
BEELINE = PROGRAMS[0]
WIDTH = 100  # where the output is no terminal


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=60)


class CommandLine(unittest.TestCase):
    def refused(self, expected, *words):
        done = run(BEELINE, *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertIn(expected, done.stderr)
        self.assertTrue(done.stderr.startswith("beeline: "), done.stderr)

    def test_a_word_that_is_no_subcommand(self):
        self.refused('"doctr" is not a subcommand; did you mean doctor? The subcommands are perf, ', "doctr")
        self.refused('"help" is not a subcommand; the subcommands are perf, ', "help")
        self.refused("name a subcommand: perf, top, ")
        self.refused("name a subcommand: perf, top, ", "--frob")

    def test_a_word_that_is_no_pattern(self):
        self.refused('"strem" is not a pattern; did you mean stream? The patterns are latency, ', "perf", "strem")
        self.refused('"foo" is not a pattern; the patterns are latency, stream, ', "perf", "foo")

    def test_an_option_that_there_is_not(self):
        self.refused("topo has no option --jsn; did you mean --json?", "topo", "--jsn")
        self.refused("topo has no option --jsn; did you mean --json?", "topo", "--jsn=x")
        self.refused("topo has no option --frobnicate; beeline topo --help lists its options", "topo", "--frobnicate")
        self.refused('"more" is one word too many', "topo", "more")
        self.refused("options come after the subcommand: beeline topo OPTIONS", "--json", "topo")

    def test_options_of_nccl_tests(self):
        self.refused("-b: this is an option of nccl-tests; here, --sizes 8..128M means", "perf", "stream", "-b", "8")
        self.refused("here it is --iters", "perf", "stream", "-n", "20")
        self.assertNotIn("nccl-tests", run(BEELINE, "perf", "--help").stdout)  # they are no options of perf

    def test_numbers(self):
        self.refused('--seconds: "5s" is not a number; write it without a unit, such as 5 or 0.5; see beeline perf',
                     "perf", "stream", "--seconds", "5s")
        self.refused('--seconds: "" is not a number', "hang", "--seconds", "")
        self.refused('--ranks: "two" is not a whole number; see', "perf", "stream", "--ranks", "two")
        self.refused('--iters: "-1" is not a whole number from 0 to 18446744073709551615', "perf", "--iters=-1")

    def test_the_width_of_the_help(self):
        for program in PROGRAMS:
            whole = run(program, "--help").stdout
            subcommands = re.findall(r"^  ([a-z]+)  ", whole.partition("\nSubcommands:\n")[2], re.MULTILINE)
            self.assertGreater(len(subcommands), 4, whole)
            for words in [], *([one] for one in subcommands):
                done = run(program, *words, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""), words)
                self.assertIn("Usage: ", done.stdout)
                self.assertEqual([line for line in done.stdout.split("\n") if len(line) > WIDTH], [], (program, words))


if __name__ == "__main__":
    unittest.main()
