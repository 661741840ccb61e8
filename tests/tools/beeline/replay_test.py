#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline replay` after a ring of four ranks was killed: what each connection did, on one time line.

Usage: replay_test.py BEELINE SOFTNIC PLUGIN HANG_RANK"""

import json
import pathlib
import re
import unittest

from ring import RANKS, RingTest, hosts, main, may_begin

# The clock of each is ahead of the one before by 1,000 seconds.
HOSTS = hosts("--time", "--monotonic", "{rank}000")

class Replay(RingTest):
    def pages(self, ring):
        return [str(page) for page in (ring.folder / "pages").iterdir()]

    def events(self, ring):
        status, text, error = ring.beeline("replay", "--json", *self.pages(ring))
        self.assertEqual((status, error), (0, ""))
        return [json.loads(line) for line in text.splitlines()]

    def wait_for_looks(self, ring, least):
        """Until so many looks have seen data on each connection."""
        def is_there():
            moved = [(e["rank"], e["connection"]) for e in self.events(ring) if e["event"] == "moved"]
            return len(set(moved)) == 2 * RANKS and all(moved.count(one) >= least for one in moved)
        ring.wait_for_pages()
        ring.wait_for(is_there, f"{least} looks at each connection")

    def killed_ring(self, **options):
        ring = self.ring(**options)
        self.wait_for_looks(ring, 2)
        ring.end()
        return ring

    def check_trace(self, ring):
        file = ring.folder / "trace.json"
        self.assertEqual(ring.beeline("replay", "--trace", str(file), *self.pages(ring)),
                         (0, "", f"wrote {file}\n"))
        events = json.loads(file.read_text())["traceEvents"]
        self.assertEqual({event["ph"] for event in events}, {"M", "X", "i"})
        rows = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
        self.assertEqual(len(rows), 2 * RANKS)
        slices = {}
        for event in events:
            self.assertIn((event["pid"], event["tid"]), rows)
            if event["ph"] == "M":
                continue
            self.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "X":
                slices.setdefault((event["pid"], event["tid"]), []).append((event["ts"], -event["dur"]))
        self.assertEqual(slices.keys(), rows)
        for row in slices.values():  # a viewer needs each slice within, or behind, the one before
            ends = []
            for begin, duration in sorted(row):
                while ends and ends[-1] <= begin + 0.001:
                    ends.pop()
                self.assertTrue(not ends or begin - duration <= ends[-1] + 0.001, row)
                ends.append(begin - duration)

    def test_ranks_that_were_killed(self):
        ring = self.killed_ring()
        status, text, error = ring.beeline("replay")
        self.assertEqual((status, error), (0, ""))
        self.assertEqual(re.findall(r"^rank (\d) \(pid \d+ on \S+\), version", text, re.M), [str(r) for r in range(RANKS)])
        self.assertEqual(len(re.findall(r"^  last seen to run at [0-9:.]+, to about a second$", text, re.M)), RANKS)
        # The ranks were in different rounds, at most one apart from their neighbours. They were killed one by one, so
        # some had seen the end of another.
        counts = [int(count) for count in re.findall(r"^    (?:ready|failed): (\d+) messages", text, re.M)]
        self.assertEqual(len(counts), 2 * RANKS)
        self.assertLessEqual(max(counts) - min(counts), RANKS)
        for count in counts:
            first = max(1, count - 127)
            self.assertRegex(text, f"    messages ({first}|{first + 1}) to {count}: 65536 bytes each")
        self.check_trace(ring)
        status, merged, _ = ring.beeline("replay", "--merge")
        times = re.findall(r"^(\d\d:\d\d:\d\d\.\d{6})  rank \d", merged, re.M)
        self.assertEqual(len(times), len(self.events(ring)))
        self.assertIn(" -> rank 3 ", merged)

    @unittest.skipUnless(may_begin(HOSTS), "this user cannot give processes host names and clocks of their own")
    def test_hosts_whose_clocks_differ(self):
        ring = self.killed_ring(begin=HOSTS)
        text = ring.beeline("replay", "--merge", *sorted(self.pages(ring)))[1]
        errors = re.findall(r"rank \d \(pid \d+ on node\d\): within (\d+) us, as its connections have measured", text)
        self.assertEqual(len(errors), RANKS - 1, text)
        self.assertLess(max(int(error) for error in errors), 1_000_000)
        events = self.events(ring)
        self.assertEqual({event["host"] for event in events}, {f"node{rank}" for rank in range(RANKS)})
        ready = [event["unix_ns"] for event in events if event["event"] == "ready"]
        self.assertLess(max(ready) - min(ready), 30e9)
        self.check_trace(ring)

    def test_mistakes(self):
        ring = self.ring()
        page = ring.folder / "page"
        page.write_text("nothing")
        for options, words in ((["/none"], "/none: open the statistics page: No such file"),
                               ([str(page)], "too small for a statistics page"),
                               (["--dir", "/none"], "cannot read /none"),
                               (["--json", "--merge"], "leave out --merge"),
                               (["--trace", "/none/trace"], "/none/trace")):
            status, text, error = ring.beeline("replay", *options)
            self.assertEqual((status, text), (2, ""), options)
            self.assertIn(words, error)
        none = (0, f"no process has left a statistics page with a connection in {ring.folder}\n", "")
        self.assertEqual(ring.beeline("replay", "--dir", str(ring.folder)), none)
        ring.wait_for_pages()
        content = bytearray(pathlib.Path(self.pages(ring)[0]).read_bytes())
        content[36:40] = bytes(4)  # no slot was ever used
        (ring.folder / "beeline-4194311-1").write_bytes(content)
        self.assertEqual(ring.beeline("replay", "--dir", str(ring.folder)), none)


if __name__ == "__main__":
    main()
