#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version, CHANGELOG.md and docs/releases.md agree with each other and with the sources.

Usage: releases_test.py VERSION, which is that of meson.build."""

import re
import sys
import unittest

import changelog

VERSION = sys.argv.pop(1)
SOURCES = {
    "protocol": ("plugin/wire/message_version.h", r"kOurVersions\{\.least = (\d+), \.most = (\d+)\}"),
    "page": ("include/beeline/stats_page.h", r"BEELINE_STATS_VERSION (\d+)"),
    "oldest": ("tools/nccl/table.h", r"kOldestAbi = (\d+)"),
    "newest": ("tools/nccl/table.h", r"kNewestAbi = (\d+)"),
}


def in_source(what):
    file, pattern = SOURCES[what]
    return re.search(pattern, (changelog.ROOT / file).read_text(encoding="utf-8")).groups()


def span(least, most, word="to"):
    return least if least == most else f"{least} {word} {most}"


def numbers(version):
    return [int(part) for part in version.removesuffix("~dev").split(".")]


def table_rows():
    """The rows of the table of releases: version, protocol, statistics page, interface of NCCL."""
    page = (changelog.ROOT / "docs" / "releases.md").read_text(encoding="utf-8")
    table = page.split("| release |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


class Releases(unittest.TestCase):
    def test_between_releases_the_version_is_one_that_no_release_has(self):
        newest = changelog.releases()[0].version
        if not changelog.is_after_a_release():
            self.assertEqual(VERSION, newest, "meson.build and the first heading of CHANGELOG.md differ")
            return
        self.assertRegex(VERSION, r"^\d+\.\d+\.\d+~dev$", "CHANGELOG.md begins with changes that are not released")
        self.assertGreater(numbers(VERSION), numbers(newest))

    def test_each_release_says_what_it_speaks_and_where_it_ends(self):
        for place, release in enumerate(changelog.releases()):
            with self.subTest(release.version):
                self.assertIsNotNone(release.protocol, "which versions of the protocol does it speak?")
                self.assertIsNotNone(release.page, "which version of the statistics page does it write?")
                if place > 0:
                    self.assertIsNotNone(release.commit, "what is its last commit?")

    def test_the_table_of_releases_agrees_with_the_changelog_and_the_sources(self):
        rows = table_rows()
        now = [span(*in_source("protocol")), *in_source("page"),
               span(f"v{in_source('oldest')[0]}", f"v{in_source('newest')[0]}")]
        self.assertEqual(rows[0][0], "`main`")
        self.assertEqual(rows[0][1:4], now)
        self.assertEqual([row[:3] for row in rows[1:]],
                         [[it.version, span(*map(str, it.protocol)), str(it.page)] for it in changelog.releases()])

    def test_a_paragraph_is_understood(self):
        text = ("# Changelog\n\n## Unreleased\n\n- x\n\n## 3.1.0 (2027-01-02)\n\nThe last commit of this version is "
                "0123456789.\nIt speaks versions 2 to 3 of the protocol between two processes, and\nwrites version 4 of "
                "the statistics page.\n\n- y\n\n## 3.0.0 (2027-01-01)\n\n- z\n")
        self.assertEqual(changelog.releases(text), [("3.1.0", "0123456789", (2, 3), 4), ("3.0.0", None, None, None)])


unittest.main()
