# SPDX-License-Identifier: Apache-2.0
"""Counts the results in meson's testlog.json. Prints lines `passed|failed|skipped COUNT NAME [: WHY]`,
`seconds COUNT NAME` and, after the count of a test that failed, `output LENGTH LINE` with the first
lines of its failure.

The count of a Catch2 program is the number of test cases that it reports. The count of a program that
ends with the line "N passed, N failed, N skipped" is that of the line. Any other test, and a program
that died before its last line, counts as one.
"""

import json
import re
import sys

ALL_PASSED = re.compile(r"^All tests passed \(.* in (\d+) test cases?\)$", re.MULTILINE)
SOME_FAILED = re.compile(
    r"^test cases:\s*\d+ \|(?:\s*(\d+) passed \|)?\s*(\d+) failed", re.MULTILINE
)

OWN_COUNT = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
OWN_SKIP = re.compile(r"^skip +(.*)$", re.MULTILINE)

GOOD = {"OK", "EXPECTEDFAIL"}

# How Catch2, the sanitizers and the test scripts begin their reports of a failure.
FAILURE = re.compile(r"FAILED:|: runtime error: |ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|^FAIL ")
LINES_OF_FAILURE = 15


def tally(test):
    name = test["name"].split(" / ")[-1]
    output = test.get("stdout", "")
    last_line = output.strip().rpartition("\n")[2]
    if test["result"] == "SKIP":
        return [("skipped", 1, f"{name}: {last_line}" if last_line else name)]
    own = OWN_COUNT.match(last_line)
    if own and (test["result"] in GOOD) == (own[2] == "0"):
        skips = [("skipped", 1, f"{name}: {why}") for why in OWN_SKIP.findall(output)]
        return [("passed", int(own[1]), name), ("failed", int(own[2]), name), *skips]
    if test["result"] in GOOD:
        cases = ALL_PASSED.search(output)
        return [("passed", int(cases[1]) if cases else 1, name)]
    cases = SOME_FAILED.search(output)
    if not cases:
        return [("failed", 1, name)]
    return [("passed", int(cases[1] or 0), name), ("failed", int(cases[2]), name)]


def failure(test):
    """The first lines of what the test printed about its failure, or else the last ones."""
    lines = (test.get("stdout", "") + "\n" + test.get("stderr", "")).splitlines()
    lines = [line for line in lines if line.strip()]
    begin = next((i for i, line in enumerate(lines) if FAILURE.search(line)), -LINES_OF_FAILURE)
    return lines[begin:][:LINES_OF_FAILURE]


def main():
    try:
        with open(sys.argv[1], encoding="utf-8") as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except FileNotFoundError:
        return  # no test was chosen
    for test in tests:
        for word, count, name in tally(test):
            if count:
                print(word, count, name)
            if word == "failed" and count:
                for line in failure(test):
                    print("output", len(line), line)
        print("seconds", round(test["duration"]), test["name"].split(" / ")[-1])


main()
