#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what happens when a cable is pulled while data moves, with recovery and without, and when a
process is stopped. Everything runs over softnic, the software NIC.

Usage: demo_faults.py BUILD"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HOSTS = "h0,h1"
NICS = ("softnic0", "softnic1")
LIMIT = "100M"  # bytes per second of each port, so that the processors are not the limit
LIMIT_GBPS = 0.1
SAMPLE_S = 0.125
PULLED_S, PLUGGED_S, END_S = 2, 4, 7  # since data moves
STOPPED_FOR_S = 2
MEASURING_BYTES = 32 << 20  # more than the iterations before the measured ones send
BARS = " ▁▂▃▄▅▆▇█"
PLAIN_BARS = " .:-=+*#@"


class Unexpected(Exception):
    """The demonstration did not show what it should."""


class Bed:
    """A fabric of two hosts with two NICs each, and a `beeline perf` on it."""

    def __init__(self, build, name, pattern):
        self.beeline = os.path.join(build, "tools/beeline")
        self.name = f"demo-{name}-{os.getpid()}"
        self._softnic = os.path.join(build, "softnic/softnic")
        self._folder = tempfile.TemporaryDirectory()
        self.environment = {**os.environ, "BEELINE_STATS_DIR": self._folder.name, "NCCL_DEBUG": "WARN"}
        self.lines = []
        self._job = subprocess.Popen(
            [self._softnic, "run", "--name", self.name, "--", self.beeline, "perf", *pattern, "--hosts", HOSTS],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.wait_for(lambda: any("(GB/s)" in line for line in self.lines), "connections")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._job.terminate()
        self.wait()
        self._folder.cleanup()

    def _read(self):
        for line in self._job.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, is_there, what):
        deadline = time.monotonic() + 60
        while not is_there():
            if time.monotonic() > deadline or (self._job.poll() is not None and not is_there()):
                raise Unexpected(f"no {what}:\n" + "\n".join(self.lines[-20:]))
            time.sleep(0.01)

    def wait(self):
        """The job's exit status."""
        status = self._job.wait()
        self._reader.join()
        return status

    def ctl(self, target, command):
        subprocess.run([self._softnic, "ctl", "--name", self.name, target, command], check=True)

    def sent(self):
        """Bytes that each NIC of the first host has sent."""
        text = subprocess.run([self._softnic, "traffic", "--name", self.name], check=True, capture_output=True,
                              text=True).stdout
        names, values = (line.split() for line in text.splitlines()[-2:])
        return [int(values[names.index(f"h0/{nic}:1")]) for nic in NICS]

    def ranks(self):
        """The process of each rank."""
        return [int(pid) for pid in re.findall(r"Rank +\d+ Pid +(\d+)", "\n".join(self.lines))]

    def log(self, words):
        """The plugin's first line with these words, without its beginning."""
        found = [line for line in self.lines if words in line]
        return found[0].split("NET/Beeline : ")[-1] if found else None


def stream(seconds, *more):
    return ["stream", "--sizes", "256K", "--seconds", str(seconds), "--env", "BEELINE_RAILS=2", *more]


def limit_ports(bed):
    for host in HOSTS.split(","):
        for nic in NICS:
            bed.ctl(f"{host}/{nic}", f"rate={LIMIT}")


def wrapped(text, indent="  "):
    width = min(os.get_terminal_size().columns if sys.stdout.isatty() else 80, 100) - 1
    line = indent
    for word in text.split():
        if len(line) + len(word) > width and line.strip():
            print(line.rstrip())
            line = indent
        line += word + " "
    print(line.rstrip(), flush=True)


def picture(rates, marks):
    """A row of bars for each NIC, a column for each sample, and a row of marks."""
    is_utf8 = "utf" in (sys.stdout.encoding or "").lower()
    bars = BARS if is_utf8 else PLAIN_BARS
    print(f"\n  What each NIC of host h0 sends; a full bar is {LIMIT_GBPS * 1000:.0f} MB/s, a column {SAMPLE_S * 1000:.0f} ms:")
    for nic, row in zip(NICS, rates):
        heights = [min(round(rate / LIMIT_GBPS * (len(bars) - 1)), len(bars) - 1) for rate in row]
        print(f"  {nic} {''.join(bars[height] for height in heights)}")
    line = [" "] * len(rates[0])
    for column, mark in marks:
        line[column:column + len(mark)] = mark
    print(f"  {' ' * len(NICS[0])} {''.join(line).rstrip()}\n", flush=True)


def pull_a_cable(build):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        with Bed(build, "cable", stream(END_S + 1, "--json", report)) as bed:
            limit_ports(bed)
            print("  Data moves over both NICs.", flush=True)
            start = last = time.monotonic()
            before = bed.sent()
            rates, marks = ([], []), []
            while last - start < END_S:
                time.sleep(max(last + SAMPLE_S - time.monotonic(), 0))
                now, sent = time.monotonic(), bed.sent()
                for row, new, old in zip(rates, sent, before):
                    row.append((new - old) / (now - last) / 1e9)
                before, last = sent, now
                if not marks and now - start > PULLED_S:
                    marks.append((len(rates[0]), "^pulled"))
                    bed.ctl("h0/softnic0", "down")
                    print("  The cable of softnic0 of host h0 is pulled.", flush=True)
                if len(marks) == 1 and now - start > PLUGGED_S:
                    marks.append((len(rates[0]), "^plugged in"))
                    bed.ctl("h0/softnic0", "up")
                    print("  It is plugged in again.", flush=True)
            if bed.wait() != 0:
                raise Unexpected("the job has failed:\n" + "\n".join(bed.lines[-20:]))
            over = bed.log(" went over to ")
            back = bed.log(" again, after ")
        with open(report, encoding="utf-8") as file:
            wrong = sum(rank["wrong"] for row in json.load(file)["rows"] for rank in row["ranks"])
    if over is None or wrong != 0:
        raise Unexpected(f"{wrong} wrong elements:\n" + "\n".join(bed.lines[-20:]))
    picture(rates, marks)
    gap = re.search(r" in ([0-9.]+ m?s)", over)
    wrapped(f"The job went on, with {wrong} wrong elements: the other NIC took over after {gap.group(1)}. "
            "In the plugin's log:")
    wrapped(over, "    ")
    if back is not None:  # a busy machine may not get so far
        wrapped(back, "    ")


def pull_it_without_recovery(build):
    with Bed(build, "off", stream(30, "--env", "BEELINE_RECOVERY=0", "--env", "BEELINE_TIMEOUT=14")) as bed:
        limit_ports(bed)
        bed.ctl("h0/softnic0", "down")
        status = bed.wait()
        # The end whose port is down knows more than the other one.
        end = bed.log(": its port is DOWN") or bed.log(" cannot move data: ")
    if status == 0 or end is None:
        raise Unexpected("the job has not failed:\n" + "\n".join(bed.lines[-20:]))
    wrapped("The job ends. Its log says why:")
    wrapped(end, "    ")


def stop_a_rank(build):
    culprit = 2
    # So many iterations are measured in one portion. Between portions ranks wait for one another outside of Beeline.
    with Bed(build, "hang", ["allreduce", "--ranks", "4", "--sizes", "64K", "--iters", "1000000"]) as bed:
        limit_ports(bed)
        bed.wait_for(lambda: sum(bed.sent()) > MEASURING_BYTES, "data")
        pid = bed.ranks()[culprit]
        os.kill(pid, signal.SIGSTOP)
        print(f"  Rank {culprit} is stopped. A few seconds later, `beeline hang` prints:", flush=True)
        try:
            for _ in range(40):  # until the ranks have waited for so long
                time.sleep(0.25)
                hang = subprocess.run([bed.beeline, "hang", "--seconds", str(STOPPED_FOR_S)], env=bed.environment,
                                      capture_output=True, text=True, check=False)
                if hang.returncode != 0:
                    break
        finally:
            os.kill(pid, signal.SIGCONT)
    said = hang.stdout
    if f"pid {pid}" not in said:
        raise Unexpected("`beeline hang` does not name the process:\n" + said)
    for line in said.split("\nConnections that wait")[0].splitlines():
        print(f"    {line}".rstrip())


def main():
    build = sys.argv[1]
    for title, act in (
            ("A cable is pulled while data moves over two NICs", pull_a_cable),
            ("The same with BEELINE_RECOVERY=0", pull_it_without_recovery),
            ("Rank 2 of four is stopped: `beeline hang` says who holds up the others", stop_a_rank)):
        print(f"\n* {title}", flush=True)
        act(build)


if __name__ == "__main__":
    try:
        main()
    except Unexpected as failure:
        sys.exit(f"demo: {failure}")
