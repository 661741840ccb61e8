#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rings of four ranks that hang: `beeline hang` names the rank that the others wait for, and why.

Usage: hang_test.py BEELINE SOFTNIC PLUGIN HANG_RANK"""

import json
import os
import pathlib
import signal
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


class Ring:
    """Four ranks, of which one may hang in a way of its own."""

    def __init__(self, folder, way="plays", **environment):
        self.folder = pathlib.Path(folder)
        pages = self.folder / "pages"
        pages.mkdir()
        self.environment = {**os.environ, "BEELINE_STATS_DIR": str(pages), "NCCL_SOCKET_IFNAME": "lo",
                            "BEELINE_STALL_WARN": "2s", **environment}
        self.log = (self.folder / "log").open("w+")
        self.ranks = [self.start(rank, way if rank == CULPRIT else "plays") for rank in range(RANKS)]

    def start(self, rank, way):
        root = pathlib.Path(os.environ["BEELINE_SYSFS_ROOT"]).parent / f"h{rank}"
        environment = {**self.environment, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "SOFTNIC_HOST": f"h{rank}",
                       "BEELINE_SYSFS_ROOT": str(root)}
        return subprocess.Popen([HANG_RANK, str(self.folder), PLUGIN, way], env=environment, stderr=self.log)

    def end(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        self.log.close()

    def said(self):
        return (self.folder / "log").read_text()

    def hang(self, *options):
        done = subprocess.run([BEELINE, "hang", "--seconds", "2", *options], env=self.environment, capture_output=True,
                              text=True, check=False, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def report(self):
        status, output, error = self.hang("--json")
        if error:
            raise AssertionError(error)
        report = json.loads(output)
        if status != (1 if report["waits"] else 0):
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


class Hang(unittest.TestCase):
    def ring(self, *args, **environment):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        ring = Ring(folder.name, *args, **environment)
        self.addCleanup(ring.end)
        return ring

    def causes(self, ring):
        """The causes, once all ranks wait for them."""
        found = []

        def is_complete():
            found[:] = ring.report()["causes"]
            return sum(cause["processes_waiting"] for cause in found) >= RANKS - 1

        ring.wait_for(is_complete, "causes for which all ranks wait")
        return found

    def check_culprit(self, ring, reasons):
        causes = self.causes(ring)
        self.assertEqual([cause["process"].get("rank") for cause in causes], [CULPRIT], causes)
        self.assertIn(causes[0]["reason"], reasons)
        _, text, _ = ring.hang()
        self.assertIn(f"CAUSE    rank {CULPRIT} (pid {ring.ranks[CULPRIT].pid}) ", text)
        return causes[0]

    def test_it_posts_no_receive(self):
        ring = self.ring("posts-no-receive")
        self.check_culprit(ring, {"no-receive", "no-send"})
        ring.wait_for(lambda: "has waited 2 s for the peer to post a receive" in ring.said(), "a line in the log")

    def test_it_sends_nothing(self):
        ring = self.ring("sends-nothing")
        self.check_culprit(ring, {"no-send", "no-receive"})
        ring.wait_for(lambda: "has waited 2 s for the data of 1 receive" in ring.said(), "a line in the log")

    def test_it_calls_nothing(self):
        ring = self.ring("calls-nothing")
        cause = self.check_culprit(ring, {"calls-nothing"})
        self.assertIn("open request", cause["fact"])
        ring.wait_for(lambda: "the application has called nothing for 2 s" in ring.said(), "a line in the log")

    def test_it_is_stopped(self):
        ring = self.ring()
        ring.wait_for_pages()
        culprit = ring.ranks[CULPRIT]
        culprit.send_signal(signal.SIGSTOP)
        cause = self.check_culprit(ring, {"stopped"})
        self.assertEqual(cause["command"], f"kill -CONT {culprit.pid}")
        culprit.send_signal(signal.SIGCONT)
        ring.wait_for(lambda: not ring.report()["waits"], "an end of the waits")

    def test_packets_are_lost(self):
        # Without recovery, the device tries for half an hour.
        ring = self.ring("plays", BEELINE_RECOVERY="0", BEELINE_TIMEOUT="24")
        ring.wait_for_pages()
        subprocess.run([SOFTNIC, "ctl", f"h{CULPRIT}/softnic0", "blackhole"], check=True)
        self.addCleanup(subprocess.run, [SOFTNIC, "ctl", f"h{CULPRIT}/softnic0", "resume"], check=False)
        causes = self.causes(ring)
        self.assertEqual({cause["reason"] for cause in causes}, {"packets-lost"}, causes)
        for cause in causes:
            self.assertIn(f"rank {CULPRIT} ", cause["fact"])

    def test_a_ring_that_goes_round(self):
        ring = self.ring()
        ring.wait_for_pages()
        for _ in range(100):
            self.assertEqual(ring.report(), {"causes": [], "waits": []})
        self.assertEqual(ring.hang(), (0, "4 processes with 8 connections: none has waited for long\n", ""))

    def test_mistakes(self):
        for options, words in ((["--dir", "/none"], "cannot read /none"), (["--seconds", "-1"], "write 0 or more")):
            done = subprocess.run([BEELINE, "hang", *options], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(words, done.stderr)
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([BEELINE, "hang", "--dir", empty], capture_output=True, text=True, check=False,
                                  timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "no process of this host uses Beeline\n"))


if __name__ == "__main__":
    if "BEELINE_SYSFS_ROOT" not in os.environ:
        with tempfile.TemporaryDirectory() as scratch:
            fabric = pathlib.Path(scratch) / "fabric.toml"
            fabric.write_text(FABRIC)
            sys.exit(subprocess.run([sys.argv[2], "run", "--name", f"hang-{os.getpid()}", "--fabric", fabric, "--",
                                     sys.executable, *sys.argv], check=False).returncode)
    BEELINE, SOFTNIC, PLUGIN, HANG_RANK = sys.argv[1:5]
    del sys.argv[1:5]
    unittest.main()
