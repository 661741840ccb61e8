#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands in the documents: a test runs each, or the document says why none does.

Usage: commands_test.py BUILD_FOLDER

A block of commands is a fenced block of the language sh, or one whose first line begins with "$ ". The line before
it is one of these marks, which readers do not see:

  <!-- run -->                  this test runs the block with bash, in a folder that looks like the root of the
                                repository, with beeline and softnic in PATH
  <!-- run over softnic -->     the same, on a host of softnic
  <!-- run by TEST, TEST -->    these tests run the commands, with options that fit a test
  <!-- not run: REASON -->

A command has to succeed, unless its comment names other exit statuses: "# exit status 0: no problem, 1: problems".
Wherever a document mentions beeline, softnic or a script with options, these have to exist."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from functools import cache

from documents import LONG_OPTION, ROOT, Block, blocks, documents, mentioned

BUILD = pathlib.Path(sys.argv[1]).resolve()
PROGRAMS = {"beeline": BUILD / "tools" / "beeline", "softnic": BUILD / "softnic" / "softnic"}
# What a reader would have in the folder. README compares two machines.
EXAMPLES = {"a.xml": "tests/tools/beeline/goldens/dgx-8rail.xml", "b.xml": "tests/tools/beeline/goldens/dgx-8rail.xml"}
TESTS = set()


@cache
def options_of(program, subcommand):
    """All long options of the subcommand, or of the script of this name. None: there is no such subcommand."""
    command = [ROOT / program / subcommand] if program == "scripts" else [PROGRAMS[program], subcommand]
    if program == "scripts" and not command[0].is_file():
        return None
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=60)
    return set(LONG_OPTION.findall(done.stdout)) if done.returncode == 0 else None


def make_folder(folder):
    """As the root of the repository, with the build folder, and with what the commands read."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("build"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(BUILD)
    for name, example in EXAMPLES.items():
        (folder / name).write_bytes((ROOT / example).read_bytes())
    path = folder / "bin"
    path.mkdir()
    for name, program in PROGRAMS.items():
        (path / name).symlink_to(program)
    return path


class Documents(unittest.TestCase):
    def test_every_block_is_marked(self):
        for block in blocks():
            with self.subTest(str(block)):
                self.assertRegex(block.mark or "", Block.MARK, f"{block}: no mark in the line before the block")

    def test_the_tests_exist(self):
        for block in blocks():
            for name in block.run_by():
                with self.subTest(str(block)):
                    self.assertTrue(name in TESTS, f"there is no test {name}")

    def test_the_commands_exist(self):
        count = 0
        for document in documents():
            for place, program, subcommand, options in mentioned(document):
                known = options_of(program, subcommand)
                with self.subTest(f"{place}: {program} {subcommand}"):
                    self.assertIsNotNone(known, "no such command")
                    self.assertEqual(options - known - {"--help"}, set(), "no such option")
                    count += 1
        self.assertGreater(count, 100)  # or mentioned() does not find them

    def test_the_help_of_scripts_begins_with_a_sentence_or_a_command(self):
        scripts = {script for document in documents() for _, program, script, _ in mentioned(document)
                   if program == "scripts"}
        self.assertIn("lint", scripts)
        for script in scripts:
            done = subprocess.run([ROOT / "scripts" / script, "--help"], capture_output=True, text=True, check=False,
                                  timeout=60)
            with self.subTest(script):
                self.assertRegex(done.stdout, r"\A(?:[A-Z]|usage: scripts/| *scripts/)")

    def test_the_commands_run(self):
        there = [block for block in blocks() if block.is_run()]
        self.assertGreater(len(there), 3)
        for block in there:
            with self.subTest(str(block)), tempfile.TemporaryDirectory() as scratch:
                self.run_block(block, pathlib.Path(scratch))

    def run_block(self, block, folder):
        path = make_folder(folder)
        script = folder / "block.sh"
        script.write_text(block.script(), encoding="utf-8")
        command = ["bash", script]
        if block.is_over_softnic():
            command = [PROGRAMS["softnic"], "run", "--", *command]
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "NCCL_SOCKET_IFNAME": "lo",
                       "SOFTNIC_FABRIC": f"docs-{os.getpid()}"}
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, f"{block}\n{block.text}\n{done.stdout[-3000:]}")


if __name__ == "__main__":
    del sys.argv[1:]
    TESTS.update(re.findall(r'"name": "([^"]+)"', (BUILD / "meson-info" / "intro-tests.json").read_text()))
    unittest.main()
