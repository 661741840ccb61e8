#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the calculations of bench/rails: rates from samples, the moment of recovery, and equal splits."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench" / "rails"))
import rails  # pylint: disable=wrong-import-position
from recovery import Samples, time_to_recover  # pylint: disable=wrong-import-position

PORTS = ["h0/softnic0:1", "h0/softnic1:1"]


class Rails(unittest.TestCase):
    def test_rates_are_averages_from_their_time_on(self):
        lines = ["seconds h1/x:1 h0/softnic1:1 h0/softnic0:1",
                 "0.00 7 0 0", "0.05 7 1000000 2000000", "0.10 7 1000000 4000000", "0.15 7 2"]
        samples = Samples.parse(lines, PORTS)
        self.assertEqual([round(rate) for _, rate in samples.rates(0)], [40, 40])
        self.assertEqual([round(rate) for _, rate in samples.sum_rates()], [60, 40])

    def test_recovery_is_the_first_good_moment_after_which_the_average_is_good(self):
        rates = [(0.0, 9), (0.1, 2), (0.2, 9), (0.3, 2), (0.4, 9), (0.5, 9), (0.6, 2)]
        self.assertAlmostEqual(time_to_recover(rates, 0.1, 0.6, 8), 0.3)
        self.assertIsNone(time_to_recover(rates, 0.6, 0.7, 8))
        dip = [(0.0, 2), (0.1, 9), (0.2, 9), (0.3, 7), (0.4, 9)]
        self.assertAlmostEqual(time_to_recover(dip, 0.0, 0.5, 8), 0.1)
        self.assertIsNone(time_to_recover([(0.0, 9), (0.1, 7), (0.2, 7)], 0.0, 0.3, 8))

    def test_equal_split(self):
        self.assertEqual(rails.equal_split([400, 100]), 0.4)
        self.assertEqual(rails.equal_split([100] * 8), 1)

    def test_row(self):
        line = rails.row("400+100", 512 << 10, 4, 0.9, [300, 460, 480])
        self.assertRegex(line, r"400\+100 +512 KiB x 4 +460\.0 +0\.920 +0\.600 +0\.960 +0\.40 +0\.90  met")
        self.assertIn("8 x 100", rails.row("+".join(["100"] * 8), 4 << 20, 8, 0.95, [1]))


if __name__ == "__main__":
    unittest.main()
