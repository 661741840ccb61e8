#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every relative link in the repository's Markdown files leads to a file, and to a heading of it if it names one.

Every source file that a page names by its path, or by the end of it, exists as well."""

import functools
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LINK = re.compile(r"\]\(([^)\s]+)\)")
SOURCE = re.compile(r"`((?!rdma/|infiniband/)[\w.-]+/[\w./-]+\.(?:h|cc|c|py|sh|def|toml|patch))`")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@functools.cache
def files():
    # The repository may belong to another user than the one that runs the test.
    return subprocess.run(["git", "-C", ROOT, "-c", "safe.directory=*", "ls-files", "-z"],
                          stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0")


def pages():
    return [ROOT / name for name in files() if name.endswith(".md") and (ROOT / name).is_file()]


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


def missing_sources(text, known):
    for name in SOURCE.findall(text):
        if not any(file == name or file.endswith("/" + name) for file in known):
            yield name


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        broken = [f"{page.relative_to(ROOT)}: {target}" for page in pages()
                  for target in broken_links(page, page.read_text(encoding="utf-8"))]
        self.assertFalse(broken, "\n" + "\n".join(broken))

    def test_every_source_file_that_a_page_names_exists(self):
        missing = [f"{page.relative_to(ROOT)}: {name}" for page in pages()
                   for name in missing_sources(page.read_text(encoding="utf-8"), files())]
        self.assertFalse(missing, "\n" + "\n".join(missing))

    def test_a_missing_source_is_found(self):
        text = "`comm/link.h` `comm/attic.h` `link.h` `<infiniband/verbs.h>` `rdma/rdma_cma.h`"
        self.assertEqual(list(missing_sources(text, ["plugin/connect/comm/link.h"])), ["comm/attic.h"])

    def test_a_broken_link_is_found(self):
        page = ROOT / "docs" / "README.md"
        text = "[a](README.md) [b](nowhere.md) [c](#documentation) [d](#nothing) [e](https://x.org/y) `[f](code.md)`"
        self.assertEqual(list(broken_links(page, text)), ["nowhere.md", "#nothing"])


if __name__ == "__main__":
    unittest.main()
