#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how soon a connection goes on when a link fails, and how soon it uses the link again.

  bench/rails/failover.py [--events 100] [--seed 1] [BUILD]

Four ranks of `beeline perf allreduce` compare every element while one port after the other fails, at
random moments. Then two ranks have 1, 64 and 512 connections on the port that fails, and each command of
a device takes 1 ms. The times come from the plugin's log. They begin before `softnic ctl` is started, which
takes some milliseconds of each. An error or a wrong element makes the script fail."""

import argparse
import os
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

from test_bed import HOSTS, Failed, fabric_text

PATIENCE_S = 60
QUIET_S = 0.2  # after which no end of a connection says anything more about a failure
UNLIMITED_MBPS = 100_000
# A path that fails more often within a minute is used again later each time (kHolds in plugin/repair/times.h).
FREE_FAILURES = 2
NEWS = re.compile(r"path \d+ of \d+ is (out of use|in use again)")


ALL_REDUCE = ["allreduce", "--sizes", "1M", "--ranks", "4", "--hosts", "h0,h0,h1,h1"]
RING = 4  # connections of an all-reduce: one for each rank


def stream(comms):
    return ["stream", "--sizes", "64K", "--depth", "2", "--hosts", ",".join(HOSTS), "--comms", str(comms)]


class Job:
    """`beeline perf` over some rails, and what its plugin says about paths."""

    def __init__(self, build, folder, rails, pattern, connections, hazards=""):
        self._connections = connections
        self._softnic = os.path.join(build, "softnic/softnic")
        self.name = f"failover-{os.getpid()}-{rails}"
        fabric = os.path.join(folder, f"{self.name}.toml")
        with open(fabric, "w", encoding="utf-8") as file:
            file.write(hazards + fabric_text([UNLIMITED_MBPS] * rails))
        beeline = os.path.join(build, "tools/beeline")
        plugin = os.path.join(build, "plugin/abi/libnccl-net-beeline.so")
        command = [self._softnic, "run", "--name", self.name, "--fabric", fabric, "--", beeline, "perf",
                   *pattern, "--plugin", plugin, "--abi", "8", "--env", f"BEELINE_RAILS={rails}",
                   "--seconds", "86400", "--log", "INFO"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
        self._output = []
        self._news = queue.Queue()  # (when, "out of use" or "in use again")
        self._connected = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        if not self._connected.wait(PATIENCE_S):
            self.stop()
            raise Failed("the ranks did not connect:\n" + "".join(self._output[-20:]))

    def _read(self):
        connections = 0
        for line in self._process.stdout:
            now = time.monotonic()
            self._output.append(line)
            found = NEWS.search(line)
            if found:
                self._news.put((now, found.group(1)))
            connections += " accepted " in line
            if connections == self._connections:
                self._connected.set()

    def ctl(self, target, command):
        subprocess.run([self._softnic, "ctl", "--name", self.name, target, command], check=True)

    def news_since(self, start, wanted, count):
        """The times from `start` at which paths changed: at least `count` of them, and all that follow
        soon."""
        times = []
        deadline = start + PATIENCE_S
        while True:
            wait = QUIET_S if len(times) >= count else deadline - time.monotonic()
            try:
                when, what = self._news.get(timeout=max(wait, 0))
            except queue.Empty:
                if len(times) >= count:
                    return times
                raise Failed(f"{len(times)} paths were {wanted}, not {count}:\n"
                             + "".join(self._output[-20:])) from None
            if what == wanted:
                times.append(when - start)

    def stop(self):
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def check(self):
        """Nothing may have failed, and no element have been wrong, until now."""
        if self._process.poll() is not None or any("wrong data" in line for line in self._output):
            raise Failed("an error, or a wrong element:\n" + "".join(self._output[-20:]))


def percentile(times, share):
    return sorted(times)[min(int(share * len(times)), len(times) - 1)]


def row(what, times, goal):
    verdict = ""
    if goal is not None:
        verdict = f"{goal * 1000:6.0f} ms   " + ("met" if percentile(times, 0.5) <= goal else "missed")
    return (f"  {what:<44}{len(times):>6}{percentile(times, 0.5) * 1000:>10.1f}"
            f"{percentile(times, 0.99) * 1000:>10.1f}{verdict:>20}")


def fail_and_restore(job, rng, port, fault, down_s, before_up=None):
    """(time until the last end goes on without the path, time until the last end uses it again)"""
    time.sleep(rng.uniform(0, 0.05))
    start = time.monotonic()
    job.ctl(port, fault)
    lost = job.news_since(start, "out of use", 2)
    time.sleep(max(start + down_s - time.monotonic(), 0))
    if before_up is not None:
        job.ctl(port, before_up)
    start = time.monotonic()
    job.ctl(port, "up" if fault == "down" else "reset")
    back = job.news_since(start, "in use again", len(lost))
    job.check()
    return max(lost), max(back)


def measure(build, folder, rails, events, faults):
    """Runs `events` faults, rail after rail. `faults(i)` gives the arguments of fail_and_restore()."""
    results = []
    while len(results) < events:
        job = Job(build, folder, rails, ALL_REDUCE, RING)
        try:
            for _ in range(min(FREE_FAILURES * rails, events - len(results))):
                results.append(fail_and_restore(job, *faults(len(results))))
        finally:
            job.stop()
    return zip(*results)


def measure_many(build, folder, comms, events):
    """Port events with so many connections on the port: (times until each end goes on without it, times
    until it uses it again)."""
    job = Job(build, folder, 2, stream(comms), comms, hazards='[hazards]\ncommand = "1ms"\n')
    lost, back = [], []
    try:
        for event in range(events):
            for command, news, times in (("down", "out of use", lost), ("up", "in use again", back)):
                start = time.monotonic()
                job.ctl(f"{HOSTS[0]}/softnic{event % 2}", command)
                times += job.news_since(start, news, 2 * comms)
                job.check()
    finally:
        job.stop()
    return lost, back


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--events", type=int, default=100, help="port events on one of two rails, default 100")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    rng = random.Random(args.seed)
    any_port = lambda rails, i: f"{rng.choice(HOSTS)}/softnic{i % rails}"
    few = max(args.events // 10, 3)
    print(f"  {'':<44}{'events':>6}{'median ms':>10}{'p99 ms':>10}{'goal for the median':>20}")
    with tempfile.TemporaryDirectory() as folder:
        lost, back = measure(build, folder, 2, args.events,
                             lambda i: (rng, any_port(2, i), "down", rng.uniform(0, 0.1)))
        print(row("two rails, a port goes down: go on", lost, 0.05), flush=True)
        print(row("the port is up again: use it", back, None), flush=True)
        lost, back = measure(build, folder, 2, few, lambda i: (rng, any_port(2, i), "blackhole", 0.5))
        print(row("two rails, one drops everything: go on", lost, 1), flush=True)
        print(row("it works again: use it", back, None), flush=True)
        lost, back = measure(build, folder, 1, few, lambda i: (rng, any_port(1, i), "down", 3))
        print(row("one rail, down for 3 s: use it again", back, 0.2), flush=True)
        address = lambda i: f"gid=3:::ffff:10.{77 + i % 100}.0.{1 + i // 100}"
        lost, back = measure(build, folder, 1, few,
                             lambda i: (rng, "h0/softnic0", "down", 1, address(i)))
        print(row("one rail, with another address: use it again", back, None), flush=True)
        for comms in (1, 64, 512):
            lost, back = measure_many(build, folder, comms, 3)
            name = f"{comms} connection{'' if comms == 1 else 's'}"
            print(row(f"{name}, a port goes down: go on", lost, None), flush=True)
            print(row("the port is up again: use it", back, None), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(f"failover.py: {error}")
