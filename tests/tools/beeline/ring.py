# SPDX-License-Identifier: Apache-2.0
"""Four ranks that send data round a ring over softnic, for tests of the commands that watch jobs.

A test that imports this is started as TEST BEELINE SOFTNIC PLUGIN HANG_RANK."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

FABRIC = """
[[host]]
name = "h[0-3]"
numa_nodes = 1
[[host.device]]
name = "softnic0"
gbps = 100
"""
RANKS = 4
CULPRIT = 2


def hosts(*options):
    """Begins the command of each rank so that it has a host name of its own. `options` are those of unshare."""
    return ["unshare", "--fork", "--kill-child=KILL", "--uts", *options, "sh", "-c", 'hostname node{rank} && exec "$@"', "sh"]


def may_begin(command):
    """Whether this user may, who needs privileges for it."""
    return subprocess.run([word.format(rank=1) for word in command] + ["true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


class Ring:
    """Four ranks, of which one may hang in a way of its own, or is absent."""

    def __init__(self, folder, way="plays", begin=(), **environment):
        """`begin` starts the command of each rank; {rank} in it is the rank."""
        self.folder = pathlib.Path(folder)
        self.begin = begin
        pages = self.folder / "pages"
        pages.mkdir()
        self.environment = {**os.environ, "BEELINE_STATS_DIR": str(pages), "NCCL_SOCKET_IFNAME": "lo",
                            "BEELINE_STALL_WARN": "4s", **environment}
        self.log = (self.folder / "log").open("w+")
        self.ranks = [self.start(rank, way if rank == CULPRIT else "plays") for rank in range(RANKS)
                      if rank != CULPRIT or way != "absent"]

    def start(self, rank, way):
        root = pathlib.Path(os.environ["BEELINE_SYSFS_ROOT"]).parent / f"h{rank}"
        environment = {**self.environment, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "SOFTNIC_HOST": f"h{rank}",
                       "BEELINE_SYSFS_ROOT": str(root)}
        begin = [word.format(rank=rank) for word in self.begin]
        return subprocess.Popen([*begin, HANG_RANK, str(self.folder), PLUGIN, way], env=environment, stderr=self.log)

    def end(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        self.log.close()

    def said(self):
        return (self.folder / "log").read_text()

    def wait_for_line(self, pattern):
        self.wait_for(lambda: re.search(pattern, self.said()), f"a line {pattern} in the log")

    def beeline(self, *words):
        """Its exit status, its output and its errors."""
        done = subprocess.run([BEELINE, *words], env=self.environment, capture_output=True, text=True, check=False,
                              timeout=60)
        return done.returncode, done.stdout, done.stderr

    def hang(self, *options):
        return self.beeline("hang", *options)

    def report(self):
        status, output, error = self.hang("--json")
        if error:
            raise AssertionError(error)
        report = json.loads(output)
        if status not in ((1, 4) if report["waits"] else (0, 1, 3)):  # 3: no page is there yet
            raise AssertionError(f"exit status {status}, {output}")
        return report

    def wait_for(self, is_there, what):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if any(rank.poll() is not None for rank in self.ranks):
                raise AssertionError(f"a rank has ended: {self.said()}")
            if is_there():
                return
            time.sleep(0.05)
        raise AssertionError(f"not within a minute: {what}\n{self.report()}\n{self.said()}")

    def wait_for_pages(self):
        """Until the ranks have connected, and move data."""
        self.wait_for(lambda: len(list((self.folder / "pages").iterdir())) == RANKS, "a page of each rank")
        self.wait_for(lambda: " with 8 connections" in self.hang()[1], "two connections of each rank")


class RingTest(unittest.TestCase):
    def ring(self, *args, **environment):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        ring = Ring(folder.name, *args, **environment)
        self.addCleanup(ring.end)
        return ring


def main():
    if "BEELINE_SYSFS_ROOT" not in os.environ:
        with tempfile.TemporaryDirectory() as scratch:
            fabric = pathlib.Path(scratch) / "fabric.toml"
            fabric.write_text(FABRIC)
            sys.exit(subprocess.run([SOFTNIC, "run", "--name", f"ring-{os.getpid()}", "--fabric", fabric, "--",
                                     sys.executable, *sys.argv], check=False).returncode)
    del sys.argv[1:5]
    unittest.main(module="__main__")


BEELINE, SOFTNIC, PLUGIN, HANG_RANK = sys.argv[1:5]
