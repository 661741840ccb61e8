#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests nccl-tests-config/gdr_gain.py with invented outputs in the format of nccl-tests: a valid pair, and
pairs in which one output is bad or damaged."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parents[2] / "nccl-tests-config" / "gdr_gain.py"
WITH = (HERE / "nccl_tests_outputs" / "with.txt").read_text(encoding="utf-8")
WITHOUT = (HERE / "nccl_tests_outputs" / "without.txt").read_text(encoding="utf-8")


def rows(text, keep):
    """The output with only the rows for which keep(size) is true."""
    def stays(line):
        return not line[:1].isspace() or keep(int(line.split()[0]))
    return "".join(line for line in text.splitlines(keepends=True) if stays(line))


class GdrGain(unittest.TestCase):
    def compare(self, direct, staged=WITHOUT):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("with.txt", "without.txt")]
            for path, text in zip(paths, (direct, staged)):
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, str(SCRIPT), *map(str, paths)],
                                  capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def refused(self, words, direct, staged=WITHOUT):
        status, _, stderr = self.compare(direct, staged)
        self.assertEqual(status, 2, stderr)
        self.assertRegex(stderr, words)

    def not_paid(self, words, direct, staged=WITHOUT):
        status, stdout, _ = self.compare(direct, staged)
        self.assertEqual(status, 1, stdout)
        self.assertRegex(stdout, words)
        self.assertIn("the gain from GPUDirect is smaller than expected", stdout)

    def test_a_good_pair(self):
        status, stdout, stderr = self.compare(WITH)
        self.assertEqual((status, stderr), (0, ""))
        # 46.8 GB/s in place of 21.5, less what the start of a message costs; 14.2 us for 33.9.
        self.assertRegex(stdout, r"bandwidth from 8 MiB on: \+11[78] % ")
        self.assertRegex(stdout, r"latency up to 8 KiB: -58 % ")
        self.assertTrue(stdout.endswith("the gain from GPUDirect is as expected\n"))
        self.assertEqual(len(re.findall(r"(?m)^ +\d+ ", stdout)), 13)

    def test_no_gain(self):
        same = WITHOUT.replace("NET/Beeline/0", "NET/Beeline/0/GDRDMA")
        self.not_paid(r"bandwidth from 8 MiB on: \+0 %", same)

    def test_gain_in_bandwidth_alone(self):
        small = rows(WITHOUT, lambda size: size <= 8192)
        mixed = rows(WITH, lambda size: size > 8192)
        head, results = mixed.split("(GB/s)       \n", 1)
        small_rows = [line for line in small.splitlines(keepends=True) if line[:1].isspace()]
        self.not_paid(r"latency up to 8 KiB: \+0 %",
                      head + "(GB/s)       \n" + "".join(small_rows) + results)

    def test_a_class_of_sizes_that_was_not_run(self):
        self.not_paid("bandwidth: not measured", rows(WITH, lambda size: size < 8 << 20))
        self.not_paid("latency: not measured", rows(WITH, lambda size: size > 8192))

    def test_wrong_data_voids_it(self):
        wrong = re.sub(r"(?m)^( +2097152 .*) 0$", r"\1 3", WITH)
        self.not_paid("wrong data in 1 of its results", wrong)

    def test_a_run_that_did_not_use_it(self):
        self.not_paid(r"4 network paths, none with GDRDMA", WITH.replace("/GDRDMA", ""))
        self.not_paid(r"shows GDRDMA on 4 network paths", WITH, WITH)

    def test_without_a_log_the_numbers_count(self):
        def quiet(text):
            return "".join(line for line in text.splitlines(keepends=True) if "INFO" not in line)
        self.assertEqual(self.compare(quiet(WITH), quiet(WITHOUT))[0], 0)

    def test_data_that_was_not_checked_is_said(self):
        unchecked = re.sub(r"(?m) 0( .*) 0$", r" N/A\1 N/A", WITH)
        status, stdout, _ = self.compare(unchecked)
        self.assertEqual(status, 0, stdout)
        self.assertIn("the data was not checked (-c 1 does)", stdout)

    def test_a_file_that_is_none(self):
        self.refused("no row of results in it", "")
        self.refused("no row of results in it", "bash: all_reduce_perf: command not found\n")
        status = subprocess.run([sys.executable, str(SCRIPT), "/nowhere", "/nowhere"],
                                capture_output=True, text=True, check=False)
        self.assertEqual((status.returncode, status.stderr),
                         (2, "/nowhere: No such file or directory; name the two outputs of nccl-tests\n"))

    def test_a_file_that_breaks_off(self):
        self.refused("ends before its last line", WITH[:WITH.index("# Avg")])
        self.refused(r"with.txt:\d+: \d+ columns, not 13", WITH[:WITH.rindex("     0\n#")])

    def test_mangled_rows(self):
        line = WITH.splitlines().index(next(row for row in WITH.splitlines() if " 512 " in row)) + 1
        self.refused(rf"with.txt:{line}: 18 columns", WITH.replace("         512 ", "         128  32 float sum -1 512 "))
        self.refused("is not a valid number", re.sub(r"-1 +14\.2", "-1 nan", WITH))
        self.refused("is not a valid number", re.sub(r"-1 +14\.2", "-1 -14.2", WITH))
        self.refused("8 bytes appear twice", WITH.replace("          32 ", "           8 "))

    def test_runs_that_have_nothing_in_common(self):
        self.refused("no size, type and operation in common", WITH.replace(" float ", "  half "))

    def test_rows_of_only_one_output_are_ignored(self):
        status, stdout, _ = self.compare(WITH, rows(WITHOUT, lambda size: size != 32))
        self.assertEqual(status, 0)
        self.assertIn("not compared: 1 results that only one run has", stdout)


if __name__ == "__main__":
    unittest.main()
