# SPDX-License-Identifier: Apache-2.0
"""The processes that a test starts, and those that these leave behind: daemons whose parents have ended."""

import ctypes
import os
import pathlib
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """From now on, they become children of this process, which can end them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Python would end without calling any cleanup.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the test was ended"))


def children():
    """{pid: state} of this process' children."""
    found = {}
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = file.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has just ended
            continue
        if int(parent) == os.getpid():
            found[int(file.parent.name)] = state
    return found


def reap_orphans(known):
    """Those that have ended, for which somebody may wait. The processes in `known` are left to their owner."""
    for pid, state in children().items():
        if state == "Z" and pid not in known:
            os.waitpid(pid, 0)


def end_children(spared):
    """All but the process `spared`. The children of those that are ended become children of this process."""
    def are_gone():
        found = children().keys() - {spared}
        for pid in found:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return not found

    wait_for(are_gone, lambda: f"an end of {children()}")


def wait_for(is_there, describe, seconds=60):
    """Returns what `is_there` returns, as soon as that is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := is_there():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {describe()}")
