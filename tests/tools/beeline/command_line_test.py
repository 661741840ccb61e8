#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `beeline` and `softnic` say to a mistake in the command line, and the width of their help.

Usage: command_line_test.py BEELINE [SOFTNIC]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
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
        self.assertEqual(run(BEELINE, "help").stdout, run(BEELINE, "--help").stdout)
        self.assertEqual(run(BEELINE, "help", "hang").stdout, run(BEELINE, "hang", "--help").stdout)
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

    def test_manual_pages_are_installed_for_all_subcommands(self):
        subcommands = re.findall(r"(?m)^  (\w+) ", run(BEELINE, "--help").stdout.split("Subcommands:")[1])
        built = pathlib.Path(BEELINE).parent / "describe"
        self.assertEqual({path.name for path in built.glob("*.1")},
                         {"beeline.1"} | {f"beeline-{name}.1" for name in subcommands})
        page = run(BEELINE, "man", "hang").stdout
        self.assertTrue(page.startswith(".TH BEELINE\\-HANG 1 "), page)
        self.assertEqual(re.findall("(?m)^[.]SH (.*)", page),
                         ["NAME", "SYNOPSIS", "DESCRIPTION", "ARGUMENTS", "OPTIONS", "EXIT STATUS", "SEE ALSO"])
        for words in (".SH SYNOPSIS\n.B beeline hang\n[OPTIONS] [files...]\n", ".SH ARGUMENTS\n.TP\n.B files\n",
                      '.BI "\\-\\-save " "FILE"\n', ".SH EXIT STATUS\n0 none waits, ", "\n.nh\n"):
            self.assertIn(words, page)
        self.assertIn("\n.TP\n.B latency\nping\\-pong in pairs", run(BEELINE, "man", "perf").stdout)
        self.assertEqual(run(BEELINE, "man", "doctor").stdout.count("\n.SS "), 1)  # the options of several hosts
        self.assertIn("eval \"$(beeline env)\"", run(BEELINE, "man", "env").stdout)
        self.assertIn("\\(gabeeline doctor\\(ga", run(BEELINE, "man", "env").stdout)
        self.refused('"hangg" is not a subcommand; did you mean hang?', "man", "hangg")

    @unittest.skipIf(len(PROGRAMS) < 2, "needs softnic")
    def test_info(self):
        variables = {"NCCL_IB_TIMEOUT": "18", "BEELINE_PEER_TIMEOUT": "30s", "BEELINE_SL": "99"}
        call = ["env", *(f"{name}={value}" for name, value in variables.items()), PROGRAMS[1], "run", "--name",
                f"info-{os.getpid()}", "--", BEELINE, "info"]
        done = run(*call, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        info = json.loads(done.stdout)
        self.assertEqual([device["name"] for device in info["devices"]], ["beeline_softnic0", "beeline_softnic1"])
        found = {one["name"]: (one["value"], one["default"], one["source"]) for one in info["parameters"]}
        self.assertEqual(found["BEELINE_TIMEOUT"], ("18", "0", "NCCL_IB_TIMEOUT"))
        self.assertEqual(found["BEELINE_PEER_TIMEOUT"], ("30s", "20s", "BEELINE_PEER_TIMEOUT"))
        self.assertEqual(found["BEELINE_SL"], ("-1", "-1", "default"))  # it was refused
        self.assertIn("BEELINE_SL=99 is out of range", " ".join(info["warnings"]))
        text = run(*call).stdout
        self.assertIn("  BEELINE_TIMEOUT = 18  (from NCCL_IB_TIMEOUT; default 0)\n", text)
        self.assertNotIn("BEELINE_SL =", text)
        self.assertIn("BEELINE_SL = -1\n", run(*call, "--all").stdout)

    def test_info_says_that_nccl_loads_another_plugin(self):
        plugin = pathlib.Path(BEELINE).resolve().parents[1] / "plugin" / "abi" / "libnccl-net-beeline.so"
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder, "other.so")
            other.write_bytes(plugin.read_bytes() + b"x")
            for value, words in (("none", "NCCL loads no plugin"), ("/none.so", "cannot load the plugin /none.so: "),
                                 (str(other), f"NCCL loads another file, {other}"), (f"/none.so,{plugin}", "")):
                with self.subTest(value=value):
                    info = json.loads(run("env", f"NCCL_NET_PLUGIN={value}", BEELINE, "info", "--json").stdout)
                    self.assertEqual(info["plugin"], str(plugin))
                    said = [line for line in info["warnings"] if line.startswith("NCCL_NET_PLUGIN")]
                    self.assertEqual([line.startswith(f"NCCL_NET_PLUGIN={value}: {words}") for line in said],
                                     [True] if words else [])

    @unittest.skipIf(len(PROGRAMS) < 2, "needs softnic")
    def test_devices_as_json(self):
        done = run(PROGRAMS[1], "run", "--name", f"list-{os.getpid()}", "--", BEELINE, "perf", "--list", "--rails", "2",
                   "--json", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([(device["name"], device["made_of"]) for device in json.loads(done.stdout)["devices"]],
                         [("beeline_softnic0", [0]), ("beeline_softnic1", [1]), ("beeline_softnic0+softnic1", [0, 1])])

    def test_completion(self):
        script = run(BEELINE, "completion", "bash").stdout + """
            compopt() { also=" and files"; }  # bash has it only while it completes
            complete_words() { also=; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _beeline; echo "${COMPREPLY[*]}$also"; }
            complete_words beeline ha
            complete_words beeline hang --s
            complete_words beeline topo --nccl-xml
            complete_words beeline hang file
            complete_words beeline topo ""
            complete_words beeline topo --diff a ""
            complete_words beeline perf s
            complete_words beeline perf --no-check s
            complete_words beeline perf -b s
            complete_words beeline perf -b 8 s
            complete_words beeline perf --json = s
            complete_words beeline completion ""
            complete_words beeline man do
            complete_words beeline help do
            """
        done = run("bash", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split("\n"), [
            "hang", "--save --seconds", "--nccl-xml --nccl-xml-version", " and files", "", " and files", "stream soak",
            "stream soak", " and files", "stream soak", " and files", "bash zsh", "doctor", "doctor", ""])
        script = run(BEELINE, "completion", "zsh").stdout
        for words in "'hang:Find which process", "'1:word:(bash zsh)'", "'1:word:(latency ", ":A B:_files:A B:_files'", "--from=[":
            self.assertIn(words, script)
        self.assertEqual(script.count("'*:file:_files'"), 2)  # of hang and replay
        self.refused("name a shell: bash or zsh", "completion", "fish")

    def test_options_of_nccl_tests(self):
        self.refused("--sizes and -b, -e, -f both say which sizes to run: use one of them", "perf", "stream", "-b", "8",
                     "--sizes", "8")
        self.refused("-w with soak: it has no warm-up", "perf", "soak", "-w", "5")
        self.refused("-g,--ngpus: each rank is a process: write --ranks N", "perf", "stream", "-g", "1")
        self.assertNotIn("--ngpus", run(BEELINE, "perf", "--help").stdout)  # it is no option of perf

    @unittest.skipIf(len(PROGRAMS) < 2, "needs softnic")
    def test_sizes_and_iterations_as_in_nccl_tests(self):
        done = run(PROGRAMS[1], "run", "--name", f"steps-{os.getpid()}", "--", BEELINE, "perf", "allreduce", "-b", "8", "-e",
                   "4K", "-f", "8", "-n", "2", "-w", "0", "--json", "-")
        self.assertEqual(done.returncode, 0, done)
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual([row["size"] for row in rows], [8, 64, 512, 4096])
        self.assertEqual({rank["iterations"] for row in rows for rank in row["ranks"]}, {2})

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
