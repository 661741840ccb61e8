#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each decision says whether it still holds: the line after its title is one of

  Status: current
  Status: in part superseded by NNNN, NNNN
  Status: superseded by NNNN

The decision that supersedes another one is later, and names it."""

import re
import unittest

from documents import ROOT

PAGES = {file.name[:4]: file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs/decisions").glob("*.md"))}
STATUS = re.compile(r"# (\d{4}): .*\n\nStatus: (?:current|(?:in part )?superseded by (\d{4}(?:, \d{4})*))\n\n")


class Decisions(unittest.TestCase):
    def test_each_has_a_status(self):
        self.assertGreater(len(PAGES), 30)
        for number, text in PAGES.items():
            with self.subTest(number):
                self.assertRegex(text, STATUS)
                self.assertEqual(STATUS.match(text)[1], number)

    def test_what_supersedes_it_says_so(self):
        for number, text in PAGES.items():
            later = (STATUS.match(text)[2] or "").split(", ") if STATUS.match(text) else [""]
            for other in filter(None, later):
                with self.subTest(f"{number}, superseded by {other}"):
                    self.assertGreater(other, number)
                    self.assertIn(other, PAGES)
                    self.assertRegex(PAGES[other], rf"[Dd]ecision\s+{number}")


if __name__ == "__main__":
    unittest.main()
