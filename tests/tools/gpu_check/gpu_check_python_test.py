#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/gpu-check's two Python files that need neither torch nor nccl-tests."""

import io
import math
import pathlib
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "gpu_check"))
sys.dont_write_bytecode = True
import ddp_step  # noqa: E402
import judge_nccl_tests  # noqa: E402

HEAD = "# nThread 1 nGpus 1 minBytes 8 maxBytes 64\n"
RANKS = ("#  Rank  0 Group  0 Pid  1 on  node0 device  0 [0000:1a:00] GPU\n"
         "#  Rank  1 Group  0 Pid  2 on  node0 device  0 [0000:1a:00] GPU\n")
ROW = "  {}  2  float  sum  -1  14.2  0.00  0.00  {}  14.3  0.00  0.00  {}\n"
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5\n"
RIGHT = ROW.format(8, 0, 0)


class NcclTests(unittest.TestCase):
    def judge(self, rows, head=HEAD + RANKS, tail=TAIL, ranks=2):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(head + rows + tail)
            file.flush()
            return judge_nccl_tests.judge(file.name, ranks)

    def test_right(self):
        self.assertEqual(self.judge(RIGHT + ROW.format(64, 0, 0)), (True, "2 sizes"))

    def test_faults(self):
        alone = RANKS.splitlines(keepends=True)[0]
        for wanted, rows, options in (
                ("8 bytes: 5 wrong elements", ROW.format(8, 5, 0), {}),
                ("8 bytes: 6 wrong elements", ROW.format(8, 0, 6), {}),
                ("were not checked", ROW.format(8, "N/A", "N/A"), {}),
                ("make MPI=1", RIGHT, {"head": (HEAD + alone) * 2}),
                ("[0, 1], not 0 to 3", RIGHT, {"ranks": 4}),
                ("no row", "", {}),
                ("ends before its last line", RIGHT, {"tail": ""}),
                ("counts 3 wrong values", RIGHT, {"tail": TAIL.replace("0 OK", "3 FAILED")}),
                ("columns", "  8  2  float  sum  -1  14.2  0.00\n", {})):
            with self.subTest(wanted):
                is_right, sentence = self.judge(rows, **options)
                self.assertFalse(is_right)
                self.assertIn(wanted, sentence)


class DdpStep(unittest.TestCase):
    def test_shares_are_all_of_the_batch_and_equal(self):
        rows = list(range(12))
        shares = [rows[ddp_step.share_of(rank, 3, 12)] for rank in range(3)]
        self.assertEqual(sum(shares, []), rows)
        self.assertEqual({len(share) for share in shares}, {4})
        with self.assertRaisesRegex(ValueError, "13 rows .* 3 ranks"):
            ddp_step.share_of(0, 3, 13)

    def test_difference_is_relative_to_the_largest_element_of_what_is_right(self):
        for found, right, difference in (([2.0, 100.0], [1.0, 100.0], 0.01),
                                         ([math.nan, 1.0], [1.0, 1.0], math.inf),
                                         ([1.0, 1.0], [1.0, math.nan], math.inf),
                                         ([1.0], [1.0, 1.0], math.inf),
                                         ([0.0], [0.0], 0),
                                         ([0.5], [0.0], 0.5)):
            with self.subTest(f"{found}, {right}"):
                self.assertAlmostEqual(ddp_step.difference(found, right), difference)

    def test_verdict_names_the_worst_and_allows_rounding(self):
        is_right, sentence = ddp_step.verdict({"a": 1e-15, "b": 0.25, "c": 0.125})
        self.assertFalse(is_right)
        self.assertIn("gradients differ from the single-process ones: b by 0.25", sentence)
        self.assertTrue(ddp_step.verdict({"a": 1e-15, "b": 0.0})[0])
        self.assertFalse(ddp_step.verdict({})[0])

    def test_without_torch_it_says_so_and_what_to_do(self):
        said = io.StringIO()
        with mock.patch.dict(sys.modules, {"torch": None}), redirect_stdout(said):
            status = ddp_step.main(["--probe"])
        self.assertEqual(status, ddp_step.UNUSABLE)
        self.assertRegex(said.getvalue(), "no PyTorch in .*pip install torch.*PYTHON=")


if __name__ == "__main__":
    unittest.main()
