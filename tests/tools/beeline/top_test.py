#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline top` beside a ring of four ranks: rates, a port that goes down, and the terminal.

Usage: top_test.py BEELINE SOFTNIC PLUGIN HANG_RANK"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time

from ring import BEELINE, CULPRIT, PLUGIN, RANKS, SOFTNIC, RingTest, main
from terminal import run as run_in_terminal


class Terminal:
    """A program in a terminal of 80 columns and 24 rows."""

    def __init__(self, words, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(words[0], words, {**environment, "TERM": "xterm"})
        self.said = ""
        self.resize(80, 24)

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, key):
        os.write(self.fd, key.encode())

    def wait_for(self, is_there):
        """Until the last screen is as wanted. Returns its lines."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.1)[0]:
                self.said += os.read(self.fd, 65536).decode()
            screens = self.said.split("\033[H\033[J")[1:]
            if screens and screens[-1].endswith("\n") and is_there(screens[-1].splitlines()):
                return screens[-1].splitlines()
        raise AssertionError(f"not within half a minute: {self.said[-2000:]}")

    def end(self):
        """The exit status, and what was said last."""
        try:
            while chunk := os.read(self.fd, 65536):
                self.said += chunk.decode()
        except OSError:
            pass  # the terminal is closed
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status), self.said


class Top(RingTest):
    def rows(self, ring):
        """The line of each rank, by words."""
        status, text, error = ring.beeline("top", "--once", "--seconds", "0.5")
        self.assertEqual((status, error), (0, ""))
        lines = [line.split() for line in text.splitlines()[3:]]
        return {int(line[0]): line[1:] for line in lines}

    def test_each_rank_has_its_rates(self):
        ring = self.ring()
        ring.wait_for_pages()
        for _ in range(20):  # on a busy machine, a rank may do nothing for a second
            rows = self.rows(ring)
            if all(float(row[3]) > 0 and float(row[4]) > 0 for row in rows.values()):
                break
        self.assertEqual(sorted(rows), list(range(RANKS)))
        for rank, (pid, device, paths, sent, received, share, failed, state) in rows.items():
            self.assertEqual((pid, device, paths, share, failed, state),
                             (str(ring.ranks[rank].pid), "softnic0:1", "2", "100%", "0", "up"))
            self.assertGreater(float(sent), 0)
            self.assertGreater(float(received), 0)
        # In a ring, each rank sends what it receives, but the looks are not at the same moment.
        self.assertLess(abs(float(rows[0][3]) - float(rows[2][3])), 0.5 * float(rows[0][3]) + 0.01)

    def test_json(self):
        ring = self.ring()
        ring.wait_for_pages()
        status, text, error = ring.beeline("top", "--json", "--seconds", "0.5")
        self.assertEqual((status, error), (0, ""))
        processes = json.loads(text)["processes"]
        self.assertEqual(sorted(process["rank"] for process in processes), list(range(RANKS)))
        for process in processes:
            (rail,) = process["rails"]
            self.assertEqual((rail["device"], rail["paths"], rail["port_is_down"]), ("softnic0:1", 2, False))
            self.assertEqual({one["role"] for one in process["connections"]}, {"send", "receive"})

    def test_ranks_of_beeline_perf(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # It tells the ranks itself, whatever has started it.
        environment = {**os.environ, "BEELINE_STATS_DIR": folder.name, "NCCL_SOCKET_IFNAME": "lo", "RANK": "7", "WORLD_SIZE": "9"}
        perf = subprocess.Popen([BEELINE, "perf", "latency", "--ranks", "2", "--plugin", PLUGIN, "--iters", "100000000"],
                                env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(perf.wait)
        self.addCleanup(perf.kill)
        deadline = time.monotonic() + 60
        ranks = []
        while ranks != ["0", "1"] and time.monotonic() < deadline:
            text = subprocess.run([BEELINE, "top", "--once", "--seconds", "0.1"], env=environment, capture_output=True,
                                  text=True, check=True).stdout
            ranks = sorted(line.split()[0] for line in text.splitlines()[3:] if " softnic0:1 " in line)
        self.assertEqual(ranks, ["0", "1"], text)

    def test_a_port_that_goes_down_and_comes_back(self):
        ring = self.ring()
        ring.wait_for_pages()
        port = f"h{CULPRIT}/softnic0"
        self.addCleanup(subprocess.run, [SOFTNIC, "ctl", port, "up"], check=False)
        subprocess.run([SOFTNIC, "ctl", port, "down"], check=True)
        ring.wait_for(lambda: self.rows(ring)[CULPRIT][-1] == "DOWN", "a port that is down")
        # Paths of its neighbors are out of use, and their ports are up.
        ring.wait_for(lambda: any(row[-1] == "use" for row in self.rows(ring).values()), "a path that is out of use")
        self.assertEqual([rank for rank, row in self.rows(ring).items() if row[-1] == "DOWN"], [CULPRIT])
        subprocess.run([SOFTNIC, "ctl", port, "up"], check=True)
        ring.wait_for(lambda: self.rows(ring)[CULPRIT][-1] == "up", "a port that is up")
        self.assertGreaterEqual(int(self.rows(ring)[CULPRIT][6]), 1)

    def test_a_terminal(self):
        ring = self.ring()
        ring.wait_for_pages()
        terminal = Terminal([BEELINE, "top", "--seconds", "0.2"], ring.environment)
        lines = terminal.wait_for(lambda lines: len(lines) == 3 + RANKS)
        self.assertIn("q: quit, c: connections", lines[0])
        self.assertTrue(lines[2].startswith("\033[1m RANK"))
        terminal.press("c")
        lines = terminal.wait_for(lambda lines: len(lines) == 3 + RANKS + 2 + 2 * RANKS)
        self.assertTrue(all(len(re.sub("\033\\[[0-9]*m", "", line)) <= 80 for line in lines), lines)
        terminal.resize(40, 6)
        lines = terminal.wait_for(lambda lines: len(lines) == 5)
        self.assertEqual(lines[4], "... 13 more lines")
        self.assertTrue(all(len(re.sub("\033\\[[0-9]*m", "", line)) <= 40 for line in lines), lines)
        terminal.press("q")
        status, said = terminal.end()
        self.assertEqual(status, 0)
        self.assertTrue(said.endswith("\033[?25h\033[?1049l"))  # the cursor and the former screen

    def test_a_terminal_that_is_narrow_or_dumb(self):
        ring = self.ring()
        ring.wait_for_pages()
        for words, name in ((["top", "--once", "--connections"], "xterm"), (["top"], "dumb")):
            status, text = run_in_terminal(60, [BEELINE, *words, "--seconds", "0.1"], **{**ring.environment, "TERM": name})
            self.assertEqual((status, "\033" in text, max(map(len, text.split("\n")))), (0, False, 60), text)

    def test_without_a_terminal_and_without_processes(self):
        ring = self.ring()
        self.assertEqual(ring.beeline("top", "--seconds", "0.1", "--dir", str(ring.folder)),
                         (0, "0 processes, 0 connections, 0.000 GB/s sent\n", ""))
        for words, reason in ((["--dir", "/none"], "cannot read /none"), (["--seconds", "0"], "write 0.1 to 3600")):
            status, text, error = ring.beeline("top", *words)
            self.assertEqual((status, text), (2, ""))
            self.assertIn(reason, error)


if __name__ == "__main__":
    main()
