#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every relative link in the repository's Markdown files leads to a file, and to a heading of it if it names one."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors_of(text):
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page, text):
    for target in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            yield target
        elif anchor and path.suffix == ".md" and anchor not in anchors_of(path.read_text(encoding="utf-8")):
            yield target


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        # The repository may belong to another user than the one that runs the test.
        listed = subprocess.run(["git", "-C", ROOT, "-c", "safe.directory=*", "ls-files", "-z", "*.md"],
                                stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0")
        pages = [ROOT / name for name in listed if name and (ROOT / name).is_file()]
        self.assertGreater(len(pages), 10)
        broken = [f"{page.relative_to(ROOT)}: {target}" for page in pages
                  for target in broken_links(page, page.read_text(encoding="utf-8"))]
        self.assertFalse(broken, "\n" + "\n".join(broken))

    def test_a_broken_link_is_found(self):
        page = ROOT / "docs" / "README.md"
        text = "[a](README.md) [b](nowhere.md) [c](#documentation) [d](#nothing) [e](https://x.org/y) `[f](code.md)`"
        self.assertEqual(list(broken_links(page, text)), ["nowhere.md", "#nothing"])


if __name__ == "__main__":
    unittest.main()
