#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how many lines of the decoders the fuzz targets reach.

usage: coverage.py REPLAY GCOV OBJECTS LEAST PATH...

Runs REPLAY and reads gcc's coverage data in the folder OBJECTS. Prints the share of lines that were
run for each file whose path begins with a PATH, and fails if a file has less than LEAST percent.
"""

import collections
import json
import os
import subprocess
import sys


def counts_in(objects):
    return [os.path.join(objects, name) for name in os.listdir(objects) if name.endswith(".gcda")]


def path_within(file, paths):
    """The file's path from the repository's root, or None if it is in none of these paths."""
    for path in paths:
        at = ("/" + file).find("/" + path)
        if at >= 0:
            return file[at:]
    return None


def lines_of(gcov, objects, paths):
    """For each file and line, whether any object ran it."""
    files = collections.defaultdict(dict)
    for data in counts_in(objects):
        done = subprocess.run([gcov, "--json-format", "--stdout", data], cwd=objects,
                              stdout=subprocess.PIPE, text=True, check=True)
        for report in done.stdout.splitlines():
            for file in json.loads(report)["files"]:
                path = path_within(file["file"], paths)
                if path is None:
                    continue
                lines = files[path]
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, False) or line["count"] > 0
    return files


def main():
    replay, gcov, objects, least, *paths = sys.argv[1:]
    for old in counts_in(objects):
        os.remove(old)
    subprocess.run([replay], check=True)
    files = lines_of(gcov, objects, paths)
    good = bool(files)
    for name, lines in sorted(files.items()):
        missed = [str(number) for number, run in sorted(lines.items()) if not run]
        percent = 100 * (len(lines) - len(missed)) / len(lines)
        print(f"{name:<34} {percent:6.1f} % of {len(lines):4d} lines"
              + (f", not {' '.join(missed)}" if missed else ""))
        good = good and percent >= float(least)
    every = [run for lines in files.values() for run in lines.values()]
    print(f"{'all decoders':<34} {100 * sum(every) / max(len(every), 1):6.1f} %"
          f" of {len(every):4d} lines; at least {least} % of each file are wanted")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
