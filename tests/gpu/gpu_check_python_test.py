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

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True
import ddp_step  # noqa: E402
import judge_nccl_tests  # noqa: E402

HEAD = "# nThread 1 nGpus 1 minBytes 8 maxBytes 64\n"
RANKS = ("#  Rank  0 Group  0 Pid  1 on  node0 device  0 [0000:1a:00] GPU\n"
         "#  Rank  1 Group  0 Pid  2 on  node0 device  0 [0000:1a:00] GPU\n")
ROW = "  {}  2  float  sum  -1  14.2  0.00  0.00  {}  14.3  0.00  0.00  {}\n"
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5\n"


class NcclTests(unittest.TestCase):
    def judge(self, rows, head=HEAD + RANKS, tail=TAIL, ranks=2):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(head + rows + tail)
            file.flush()
            return judge_nccl_tests.judge(file.name, ranks)

    def fault(self, *arguments, **options):
        is_right, sentence = self.judge(*arguments, **options)
        self.assertFalse(is_right)
        return sentence

    def test_right(self):
        self.assertEqual(self.judge(ROW.format(8, 0, 0) + ROW.format(64, 0, 0)), (True, "2 sizes"))

    def test_wrong_elements_on_either_side(self):
        self.assertIn("8 bytes: 5 wrong elements", self.fault(ROW.format(8, 5, 0)))
        self.assertIn("8 bytes: 6 wrong elements", self.fault(ROW.format(8, 0, 6)))

    def test_not_checked(self):
        self.assertIn("were not checked", self.fault(ROW.format(8, "N/A", "N/A")))

    def test_built_without_mpi(self):
        alone = RANKS.splitlines(keepends=True)[0]
        self.assertIn("make MPI=1", self.fault(ROW.format(8, 0, 0), head=(HEAD + alone) * 2))

    def test_a_rank_is_missing(self):
        self.assertIn("[0, 1], not 0 to 3", self.fault(ROW.format(8, 0, 0), ranks=4))

    def test_nothing_ran(self):
        self.assertIn("no row", self.fault(""))

    def test_breaks_off(self):
        self.assertIn("breaks off", self.fault(ROW.format(8, 0, 0), tail=""))

    def test_counts_wrong_values_at_the_end(self):
        tail = TAIL.replace("0 OK", "3 FAILED")
        self.assertIn("counts 3 wrong values", self.fault(ROW.format(8, 0, 0), tail=tail))

    def test_two_processes_wrote_into_one_row(self):
        self.assertIn("columns", self.fault("  8  2  float  sum  -1  14.2  0.00\n"))


class Shares(unittest.TestCase):
    def test_shares_are_all_of_the_batch_and_equal(self):
        rows = list(range(12))
        shares = [rows[ddp_step.share_of(rank, 3, 12)] for rank in range(3)]
        self.assertEqual(sum(shares, []), rows)
        self.assertEqual({len(share) for share in shares}, {4})

    def test_what_cannot_be_shared_evenly_is_refused(self):
        with self.assertRaisesRegex(ValueError, "13 rows .* 3 ranks"):
            ddp_step.share_of(0, 3, 13)


class Gradients(unittest.TestCase):
    def test_difference_is_relative_to_the_largest_element(self):
        self.assertEqual(ddp_step.difference([1.0, 100.0], [1.0, 100.0]), 0)
        self.assertAlmostEqual(ddp_step.difference([2.0, 100.0], [1.0, 100.0]), 0.01)

    def test_nan_and_missing_elements_are_infinitely_wrong(self):
        self.assertEqual(ddp_step.difference([math.nan, 1.0], [1.0, 1.0]), math.inf)
        self.assertEqual(ddp_step.difference([1.0, 1.0], [1.0, math.nan]), math.inf)
        self.assertEqual(ddp_step.difference([1.0], [1.0, 1.0]), math.inf)

    def test_of_zeros_the_difference_is_absolute(self):
        self.assertEqual(ddp_step.difference([0.0], [0.0]), 0)
        self.assertEqual(ddp_step.difference([0.5], [0.0]), 0.5)

    def test_verdict_names_the_worst(self):
        is_right, sentence = ddp_step.verdict({"a": 1e-15, "b": 0.25, "c": 0.125})
        self.assertFalse(is_right)
        self.assertIn("gradients differ from the single-process ones: b by 0.25", sentence)

    def test_rounding_is_right(self):
        self.assertEqual(ddp_step.verdict({"a": 1e-15, "b": 0.0})[0], True)

    def test_no_gradients_are_not_right(self):
        self.assertFalse(ddp_step.verdict({})[0])


class Torch(unittest.TestCase):
    def test_without_torch_it_says_so_and_what_to_do(self):
        said = io.StringIO()
        with mock.patch.dict(sys.modules, {"torch": None}), redirect_stdout(said):
            status = ddp_step.main(["--probe"])
        self.assertEqual(status, ddp_step.UNUSABLE)
        self.assertRegex(said.getvalue(), "no PyTorch in .*pip install torch.*PYTHON=")


if __name__ == "__main__":
    unittest.main()
