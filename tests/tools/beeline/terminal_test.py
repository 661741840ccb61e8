#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the commands write to a terminal: no line is longer than it is wide, and words that matter have colors.

Usage: terminal_test.py BEELINE SOFTNIC
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import terminal

BEELINE, SOFTNIC = (os.path.abspath(path) for path in sys.argv[1:])
del sys.argv[1:]
TESTS = pathlib.Path(__file__).resolve().parents[2]
RECORDS = TESTS / "tools" / "doctor" / "records"
NUMA = str(RECORDS / "numa.json")
NO_RDMA = str(RECORDS / "no-rdma.json")
MACHINE = str(TESTS / "tools" / "beeline" / "goldens" / "dgx-8rail.xml")
WIDTHS = 60, 80, 200
# What must stay on one line: a command to paste, and a path, however deep the build folder is.
PASTED = re.compile(r"^( +(run   .*|(lspci|grep) .*|export .*|scripts/bench .*)|(#|Plugin:)? *(from  )?/\S*)$")


class Terminal(unittest.TestCase):
    def fits(self, *words, **variables):
        for columns in WIDTHS:
            _, text = terminal.run(columns, list(words), **variables)
            lines = terminal.plain(text).split("\n")
            self.assertGreater(len(lines), 2, words)
            long = [line for line in lines if len(line) > columns and not PASTED.match(line)]
            self.assertEqual(long, [], (columns, words))

    def test_help_fits(self):
        for program in BEELINE, SOFTNIC:
            said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
            names = re.findall(r"^  ([a-z]+)  ", said.partition("\nSubcommands:\n")[2], re.MULTILINE)
            self.assertGreater(len(names), 5)
            for words in [], *([name] for name in names):
                self.fits(program, *words, "--help")
        self.assertRegex(terminal.run(60, [BEELINE, "perf", "--help"])[1], r"\n  connect    .*\n {13}[^ ]")
        self.fits(BEELINE, "--version")
        self.fits(str(TESTS.parent / "scripts" / "bench"), "--help")

    def test_errors_fit(self):
        for words in [BEELINE], [BEELINE, "hangg"], [BEELINE, "perf", "foo"], [SOFTNIC, "runn"], [SOFTNIC, "ls", "--x"]:
            piped = subprocess.run(words, capture_output=True, text=True, check=False).stderr
            self.assertEqual(piped.count("\n"), 1, piped)
            for columns in WIDTHS:
                _, text = terminal.run(columns, words)
                first, *more = text.splitlines()
                self.assertEqual([line for line in text.split("\n") if len(line) > columns], [])
                self.assertEqual([line for line in more if not re.match("  [^ ]", line)], [])
                self.assertEqual([" ".join(text.split()), bool(more)], [piped.strip(), len(piped) > columns + 1], first)

    def test_manual_page(self):
        page = subprocess.run([BEELINE, "man", "hang"], capture_output=True, text=True, check=True).stdout
        for ends, shown in ((0, "shown by man\n"), (1, page)):
            with tempfile.TemporaryDirectory() as folder:
                man = pathlib.Path(folder) / "man"
                man.write_text(f'#!/bin/sh\ncat >"$0.page"\n[ {ends} = 1 ] || echo shown by "$(basename $0)"\nexit {ends}\n',
                               encoding="utf-8")
                man.chmod(0o755)
                status, said = terminal.run(80, [BEELINE, "man", "hang"], PATH=f"{folder}:{os.environ['PATH']}")
                self.assertEqual((status, said, man.with_suffix(".page").read_text(encoding="utf-8")), (0, shown, page))

    def test_reports_fit(self):
        for words in (["doctor", "--root", NUMA, "--all"], ["doctor", "--list"], ["doctor", "--compare", NUMA, NO_RDMA],
                      ["topo", "--from", MACHINE, "--all"], ["topo", "--from", MACHINE, "--brief"],
                      ["topo", "--from", MACHINE, "--check"], ["topo", "--diff", MACHINE, "/sys"]):
            self.fits(BEELINE, *words)

    def test_what_runs_over_a_device_fits(self):
        fabric = [SOFTNIC, "run", "--name", f"terminal-{os.getpid()}", "--"]
        self.fits(*fabric, SOFTNIC, "ls")
        on = [*fabric, BEELINE]
        for words in (["info", "--all"], ["perf", "--list"], ["perf", "latency", "--iters", "3", "--sizes", "8,1M"],
                      ["perf", "soak", "--iters", "1", "--sizes", "8"]):
            self.fits(*on, *words, NCCL_IB_TIMEOUT="18")

    def test_words_that_matter_have_colors(self):
        red, yellow, green = (f"\033[{color}m{{}}\033[0m" for color in (31, 33, 32))
        shown = {("doctor", "--root", NUMA, "--all"): (yellow.format("WARN"), green.format("OK")),
                 ("doctor", "--root", NO_RDMA): (red.format("FAIL"),)}
        for words, colored in shown.items():
            _, text = terminal.run(80, [BEELINE, *words])
            for word in colored:
                self.assertIn(word, text)
            for variables in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
                _, without = terminal.run(80, [BEELINE, *words], **variables)
                self.assertEqual(without, terminal.plain(text))
            piped = subprocess.run([BEELINE, *words], capture_output=True, text=True, check=False).stdout
            self.assertNotIn("\033", piped)

    def test_long_work_shows_that_it_goes_on(self):
        on = [SOFTNIC, "run", "--name", f"progress-{os.getpid()}", "--", BEELINE]
        for words, shown in ((["doctor", "--seconds", "3"], "# 2 s, watching the error counters of the ports for 3 s"),
                             (["perf", "rate", "--seconds", "4"], " s, 8 bytes, measuring, ")):
            _, text = terminal.run(60, [*on, *words])
            self.assertIn(shown, text)
            # The line is not longer than the terminal, and is erased before anything else is written.
            parts = text.split("\r\033[K")[1:]
            lines = [part for part in parts if re.match("# [0-9]+ s, ", part)]
            self.assertEqual([line for line in lines if "\n" in line or len(line) >= 60], [])
            self.assertNotIn(parts[-1], lines)
        self.assertNotIn("\033", terminal.run(60, [*on, "doctor", "--seconds", "3"], TERM="dumb")[1])
        piped = subprocess.run([*on, "doctor", "--seconds", "3"], capture_output=True, text=True, check=False)
        self.assertEqual((piped.stderr, "\r" in piped.stdout), ("", False))

    def test_doctor_of_several_hosts_shows_what_it_waits_for(self):
        # The second doctor never answers, and ends when the test does.
        with tempfile.TemporaryDirectory() as folder:
            launch = f"{folder}/launch"
            pathlib.Path(launch).write_text("#!/bin/sh\nread -r line\nread -r line\n", encoding="utf-8")
            os.chmod(launch, 0o755)
            session = terminal.Session(60, [BEELINE, "doctor", "--peer", "other", "--launch", launch, "--seconds", "0"])
            self.addCleanup(session.kill)
            session.wait_for(" s, examining 2 hosts: 1 have answered")


if __name__ == "__main__":
    unittest.main()
