#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each promise of README.md and of docs/faults.md names tests that show it, and these tests exist.

Usage: claims_test.py BUILD_FOLDER

docs/claims.md quotes the promises of README.md: each part of a cell of its first table, and of a sentence of the section
"What works today". Semicolons separate parts. docs/faults.md names the tests in its own tables.

A test is named as meson names it, and a Catch2 program by its test cases as well: `test` "case" "case". In faults.md
the cases are in comments, which readers do not see. A row of tests/vm/suites/faults.sh, which vm-faults runs, is a test,
too."""

import json
import pathlib
import re
import sys
import unittest

from documents import ROOT

BUILD = pathlib.Path(sys.argv[1]).resolve()
REFERENCE = re.compile(r'`([\w.-]+)`((?: "[^"]+")*)')
TEST_CASE = re.compile(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)(?:,\s*"([^"]*)")?')


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def plain(text):
    """Without emphasis, the addresses of links and line breaks."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.replace("**", ""))
    return " ".join(text.split()).rstrip(".")


def rows(text):
    """The cells of each row of each table, without the headings."""
    for table in re.findall(r"(?m)^\|.*\n\|[-|]+\n((?:\|.*\n)+)", text):
        for line in table.splitlines():
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def promises_of_readme():
    readme = read("README.md")
    texts = [cells[1] for cells in rows(readme[:readme.index("\n## ")])]
    works = re.search(r"(?s)\n## What works today\n(.*?)\n## ", readme)[1]
    texts += re.split(r"(?m)^- |(?<=\.)\s+(?=[A-Z`])", works)
    return [plain(part) for text in texts for part in text.split("; ") if part.strip()]


def tests():
    """The command of each test of meson."""
    described = json.loads((BUILD / "meson-info" / "intro-tests.json").read_text(encoding="utf-8"))
    return {test["name"]: test["cmd"] for test in described}


def cases_of(command):
    """The test cases that the command of a Catch2 program runs; None if it runs another program."""
    program = next((word for word in command if re.search(r"\btests/.*_tests?$", word)), None)
    if program is None:
        return None
    folder = ROOT / (BUILD / program).resolve().relative_to(BUILD).parent
    chosen = command[command.index(program) + 1:]
    return {name for name, tags in test_cases(folder) if all(is_chosen(name, tags, words) for words in chosen)}


def test_cases(folder):
    for file in folder.glob("*.cc"):
        for names, tags in TEST_CASE.findall(file.read_text(encoding="utf-8")):
            yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', names)), tags


def is_chosen(name, tags, words):
    if words.endswith("*"):
        return name.startswith(words.lstrip("~")[:-1]) != words.startswith("~")
    return all((tag in tags) != bool(excluded) for excluded, tag in re.findall(r"(~?)(\[\w+\])", words))


class Claims(unittest.TestCase):
    tests = tests()
    faults = set(re.findall(r"(?m)^row_(\w+)\(\)", read("tests/vm/suites/faults.sh")))

    def must_be_shown(self, by):
        by = re.sub(r"<!-- (.*?) -->", r"\1", by)
        self.assertRegex(by, rf"^{REFERENCE.pattern}(, {REFERENCE.pattern})*$")
        for name, quoted in REFERENCE.findall(by):
            if name in self.faults:
                continue
            self.assertIn(name, self.tests)
            cases = cases_of(self.tests[name])
            named = re.findall(r'"([^"]+)"', quoted)
            if cases is None:
                self.assertEqual(named, [], f"{name} is no Catch2 program")
                continue
            self.assertNotEqual(named, [], f"{name} is a Catch2 program, and no case is named")
            self.assertEqual(set(named) - cases, set(), f"{name} has no such case")

    def test_each_promise_of_the_readme_is_in_the_table(self):
        promises = promises_of_readme()
        self.assertGreater(len(promises), 30)
        quoted = [plain(promise) for promise, _ in rows(read("docs/claims.md"))]
        self.assertEqual(sorted(quoted), sorted(promises))

    def test_each_promise_of_the_readme_is_shown(self):
        for promise, by in rows(read("docs/claims.md")):
            with self.subTest(promise):
                self.must_be_shown(by)

    def test_each_row_about_faults_is_shown(self):
        told = list(rows(read("docs/faults.md")))
        self.assertGreater(len(told), 40)
        for row in told:
            with self.subTest(row[0]):
                self.must_be_shown(row[-1])


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main()
