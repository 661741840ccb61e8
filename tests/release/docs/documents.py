# SPDX-License-Identifier: Apache-2.0
"""The blocks of commands in the documents, and the commands that their text mentions."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Decisions and results tell what was run on a day of the past.
OF_THE_PAST = ("docs/decisions/", "docs/results/")
BLOCK = re.compile(r"(?m)^( *)```(\S*).*\n((?:.*\n)*?) *```$")
PROGRAM = re.compile(r"(?<![\w.-])(?:[\w./]*/)?(?:(beeline|softnic) ([a-z]+)|scripts/([a-z-]+))\b(?![./])")
# Where the words of one command end.
END = re.compile(r" -- |[|;&`\n)#]|$")
LONG_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


class Block:
    MARK = r"^<!-- (run( over softnic)?|run by [\w.-]+(, [\w.-]+)*|not run: \S.*) -->$"

    def __init__(self, document, line, mark, text):
        self.place = f"{document}:{line}"
        self.mark = mark
        self.text = text

    def __str__(self):
        return self.place

    def is_run(self):
        return self.mark in ("<!-- run -->", "<!-- run over softnic -->")

    def is_over_softnic(self):
        return self.mark == "<!-- run over softnic -->"

    def run_by(self):
        """The names of the tests that run the commands."""
        match = re.match(r"<!-- run by (.*) -->", self.mark or "")
        return match[1].split(", ") if match else []

    def script(self):
        """For bash: ends at the first command whose exit status is none of those that its comment names."""
        commands = re.sub(r"\\\n\s*", " ", self.text).splitlines()
        lines = ["set -u -o pipefail"]
        for command in commands:
            statuses = re.findall(r"\b(\d):", command) if "# exit status" in command else ["0"]
            lines += [command, f'status=$?; case $status in {"|".join(statuses)}) ;; *) exit "$status" ;; esac']
        return "\n".join(lines) + "\n"


def documents():
    """The names of the documents, relative to the root."""
    names = [str(file.relative_to(ROOT)) for pattern in ("*.md", "[a-z]*/*.md", "docs/**/*.md")
             for file in ROOT.glob(pattern)]
    return sorted({name for name in names if not name.startswith(OF_THE_PAST + ("build",))})


def has_commands(block):
    return block[2] == "sh" or block[3].lstrip().startswith("$ ")


def blocks():
    for document in documents():
        text = (ROOT / document).read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if not has_commands(match):
                continue
            above = text[:match.start()].splitlines()
            mark = above[-1].strip() if above and above[-1].strip().startswith("<!--") else None
            yield Block(document, len(above) + 1, mark, match[3])


def code_of(text):
    """The blocks and the quoted words of a document: (line, text) of each."""
    for match in filter(has_commands, BLOCK.finditer(text)):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"\\\n\s*", " ", match[3])
    without_blocks = BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in re.finditer(r"`([^`]+)`", without_blocks):
        yield without_blocks.count("\n", 0, match.start()) + 1, match[1].replace("\n", " ")


def mentioned(document):
    """(place, program, subcommand, long options) of each command of this project that the document mentions."""
    for line, code in code_of((ROOT / document).read_text(encoding="utf-8")):
        for match in PROGRAM.finditer(code):
            words = code[match.end():END.search(code, match.end()).start()]
            options = set(LONG_OPTION.findall(words))
            yield f"{document}:{line}", match[1] or "scripts", match[2] or match[3], options
