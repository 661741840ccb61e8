#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts, by strace, the system calls of the thread that moves data between the marks of `steady`.

  syscalls_test.py PROGRAM ARGUMENT...

A deliberate call in the phase "control" checks the counting."""

import collections
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
MARK = re.compile(r'^(\d+) .*"steady (begin|end): ([^"]*)"')
CALL = re.compile(r"^(\d+) +(\w+)\(")  # resumed and signals are not new calls


def count_calls(lines):
    """{phase: Counter of calls}, of the thread that sets the marks; and of all others together."""
    phases, others = {}, collections.Counter()
    thread, phase = None, None
    for line in lines:
        if mark := MARK.match(line):
            thread, word, name = mark.groups()
            phase = name if word == "begin" else None
            if phase:
                phases[phase] = collections.Counter()
        elif phase and (call := CALL.match(line)):
            (phases[phase] if call[1] == thread else others)[call[2]] += 1
    return phases, others


def judge(phases):
    """What is wrong, in sentences."""
    wrong = []
    if phases.get("control") != {"getpid": 1}:
        wrong.append(f"one call on purpose, and the count says {dict(phases.get('control', {}))}")
    if sum(phases.get("connecting", {}).values()) == 0:
        wrong.append("connecting made no system call: the trace is not of this program")
    steady = {name: calls for name, calls in phases.items() if "bytes" in name}
    if len(steady) < 10:
        wrong.append(f"only {len(steady)} phases were seen")
    wrong += [f"{name}: {dict(calls)}" for name, calls in steady.items() if calls]
    return wrong


def main():
    if shutil.which("strace") is None:
        print("strace is not installed (package strace)")
        return SKIPPED
    allowed = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], stderr=subprocess.PIPE,
                             text=True, check=False)
    if allowed.returncode != 0:
        print(f"strace may not trace here: {allowed.stderr.strip()}")
        return SKIPPED
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as trace:
        done = subprocess.run(["strace", "-f", "-s", "100", "-o", trace.name, *sys.argv[1:]],
                              check=False)
        phases, others = count_calls(trace)
    if done.returncode != 0:
        print(f"the program failed: {done.returncode}")
        return 1
    for name, calls in phases.items():
        print(f"  {name:<44}{sum(calls.values()):>6} system calls")
    print(f"  other threads meanwhile: {dict(others)}")
    wrong = judge(phases)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
