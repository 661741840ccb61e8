#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline export` beside a ring of four ranks: the three ways to deliver, and what the metrics say.

Usage: export_test.py BEELINE SOFTNIC PLUGIN HANG_RANK"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

from exported import COUNTERS, Exporter, make_sysfs, parse, total
from ring import BEELINE, CULPRIT, RANKS, SOFTNIC, RingTest, main

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "monitoring.md"
CLIENTS = 64  # that the server keeps


def until(is_there, what):
    """Waits for a condition, and returns what it returned."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if found := is_there():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within half a minute: {what}")


def ask(port, request, timeout=30):
    """All that the server answers to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as client:
        client.sendall(request)
        reply = b""
        while chunk := client.recv(65536):
            reply += chunk
        return reply.decode()


class Export(RingTest):
    def playing(self, *args):
        """A ring that sends, with a tree of counters."""
        ring = self.ring(*args)
        self.values = make_sysfs(ring.folder / "sys")
        ring.environment["BEELINE_SYSFS_ROOT"] = str(ring.folder / "sys")
        ring.wait_for_pages()
        return ring

    def without_processes(self):
        """An environment in which no process uses Beeline."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return {**os.environ, "BEELINE_STATS_DIR": folder.name}

    def once(self, ring, *options):
        status, text, error = ring.beeline("export", *options)
        self.assertEqual((status, error), (0, ""))
        return parse(text)

    def test_what_is_printed(self):
        ring = self.playing()
        # A process looks once a second what its paths have carried.
        until(lambda: all(sample.value > 0 for sample in self.once(ring).samples
                          if sample.name == "beeline_path_bytes_total"), "bytes of paths")
        self.check_metrics(self.once(ring, "--host", "node7"))
        # The table in the documentation names what there is, with its type and its labels.
        found = self.once(ring)
        exported = {name: (kind, sorted({label for sample in found.samples if sample.name == name
                                         for label in sample.labels} - {"host"}))
                    for name, kind in found.types.items()}
        rows = re.findall(r"^\| `(beeline_\w+)` \| (counter|gauge) \|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
        written = {name: (kind, sorted(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
        self.assertEqual(len(rows), len(written))
        self.maxDiff = None
        kind, labels = written.pop("beeline_hang_cause_seconds")  # of jobs that do not go on
        self.assertEqual((kind, labels), ("gauge", ["culprit_host", "nccl_job", "rank", "reason"]))
        self.assertEqual(written, exported)

    def check_metrics(self, found):
        self.assertEqual({sample.labels["host"] for sample in found.samples}, {"node7"})
        self.assertEqual(total(found, "beeline_info"), 1)
        self.assertEqual(total(found, "beeline_processes", state="running"), RANKS)
        self.assertEqual(total(found, "beeline_unreadable_pages"), 0)
        for direction in ("send", "receive"):
            self.assertEqual(total(found, "beeline_connections", state="ready", direction=direction), RANKS)
            self.assertGreater(total(found, "beeline_messages_total", direction=direction), 0)
            self.assertGreater(total(found, "beeline_path_bytes_total", device="softnic0:1", direction=direction), 0)
            self.assertEqual(total(found, "beeline_bytes_total", direction=direction) % 65536, 0)
        self.assertEqual(total(found, "beeline_paths", device="softnic0:1", state="up"), 2 * RANKS)
        self.assertEqual(total(found, "beeline_paths", state="down"), 0)
        self.assertEqual(total(found, "beeline_errors_total"), 0)
        self.assertEqual(total(found, "beeline_port_up", device="softnic0:1"), 1)
        self.assertEqual(total(found, "beeline_port_rate_bytes_per_second"), 12.5e9)
        self.assertEqual(total(found, "beeline_port_sent_bytes_total"), 4 * self.values["port_xmit_data"])
        for name, file in (("ecn_marked", "np_ecn_marked_roce_packets"), ("cnp_sent", "np_cnp_sent"),
                           ("out_of_order", "out_of_sequence"), ("retransmissions", "roce_adp_retrans"),
                           ("ack_timeouts", "local_ack_timeout_err"), ("rnr", "rnr_nak_retry_err"),
                           ("retry_exhausted", "req_transport_retries_exceeded")):
            self.assertEqual(total(found, f"beeline_port_{name}_total"), self.values[file], name)
        ports = [name for name in found.types if name.startswith("beeline_port_") and name.endswith("_total")]
        self.assertEqual(len(ports), sum(len(names) for names in COUNTERS.values()))

    def test_a_text_file(self):
        ring = self.playing()
        folder = ring.folder / "textfile"
        folder.mkdir()
        file = folder / "beeline.prom"
        self.assertEqual(ring.beeline("export", "--textfile", str(folder)), (0, "", f"wrote {file}\n"))
        self.assertEqual(total(parse(file.read_text()), "beeline_processes", state="running"), RANKS)
        file.unlink()

        for end in (signal.SIGTERM, signal.SIGINT):
            exporter = subprocess.Popen([BEELINE, "export", "--textfile", str(folder), "--seconds", "0.1"],
                                        env=ring.environment)
            self.addCleanup(exporter.kill)
            until(file.exists, "the file")
            # Whoever has opened it reads all of it, because another file takes its place.
            with file.open() as first:
                number = os.fstat(first.fileno()).st_ino
                until(lambda: file.stat().st_ino != number, "another file")
                before = parse(first.read())
            until(lambda: total(parse(file.read_text()), "beeline_bytes_total") > total(before, "beeline_bytes_total"),
                  "more bytes")
            # No other one is there that node_exporter would take for one.
            self.assertEqual([name for name in os.listdir(folder) if name.endswith(".prom")], ["beeline.prom"])
            exporter.send_signal(end)
            self.assertEqual(exporter.wait(timeout=30), 0)
            self.assertEqual(os.listdir(folder), [])

    def test_http(self):
        ring = self.playing()
        with Exporter(ring.environment) as exporter:
            port = exporter.port
            reply = ask(port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, body = reply.partition("\r\n\r\n")
            self.assertIn("HTTP/1.1 200 OK\r\n", head)
            self.assertIn("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8", head)
            self.assertIn(f"\r\nContent-Length: {len(body)}", head)
            self.assertEqual(total(parse(body), "beeline_processes", state="running"), RANKS)
            head, _, body = ask(port, b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").partition("\r\n\r\n")
            self.assertEqual((head[:12], body), ("HTTP/1.1 200", ""))
            for request, status in ((b"GET / HTTP/1.0\r\n\r\n", 404), (b"POST /metrics HTTP/1.0\r\n\r\nx=1", 405),
                                    (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
                                    (b"\x16\x03\x01\x02\n", 400), (b"GET /metrics HTTP/1.0\r\n" + b"a" * 100000, 400)):
                self.assertEqual(ask(port, request)[:12], f"HTTP/1.1 {status}", request[:30])
            self.check_who_may_connect(port)
            status, text, error = ring.beeline("export", "--http", str(port))
            self.assertEqual((status, text), (2, ""))
            self.assertIn("Address already in use; choose another port, or 0 for a free one", error)
        self.assertEqual(exporter.status, 0)

    def check_who_may_connect(self, port):
        """Only this host."""
        places = [line.split()[1] for table in ("tcp", "tcp6")
                  for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
                  if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")]
        self.assertEqual(places, [f"0100007F:{port:04X}"])

    def test_slow_and_silent_clients_stop_nobody(self):
        with Exporter(self.without_processes()) as exporter:
            # More of them than the server keeps: some say nothing, some stop in the middle, some do not read.
            clients = []
            for number in range(CLIENTS + 20):
                client = socket.create_connection(("127.0.0.1", exporter.port), timeout=30)
                self.addCleanup(client.close)
                clients.append(client)
                client.sendall((b"", b"GET /metr", b"GET /metrics HTTP/1.0\r\n\r\n")[number % 3])
            start = time.monotonic()
            exporter.scrape()
            self.assertLess(time.monotonic() - start, 2)  # a client has 5 s
            # Those who came first made room for the others, and those who are slow are disconnected when their time
            # is up. None of them is answered.
            silent = [client for number, client in enumerate(clients) if number % 3 != 2]
            for client in (silent[0], silent[-2], silent[-1]):
                client.settimeout(15)
                try:
                    self.assertEqual(client.recv(65536), b"")
                except ConnectionResetError:
                    pass
            exporter.scrape()

    def test_totals_do_not_fall_when_processes_end(self):
        ring = self.playing()
        with Exporter(ring.environment) as exporter:
            before = exporter.scrape()
            self.assertEqual(total(before, "beeline_processes", state="running"), RANKS)
            for rank in ring.ranks:
                rank.terminate()
                rank.wait()
            ended = until(lambda: self.with_running(exporter, 0), "the end of all ranks")
            self.check_growth(before, ended)
            self.assertEqual(total(ended, "beeline_connections"), 0)
            # Without the pages of those that have ended, and with a new job.
            for page in (ring.folder / "pages").iterdir():
                page.unlink()
            until(lambda: total(exporter.scrape(), "beeline_processes", state="ended") == 0, "no page")
            emptied = exporter.scrape()
            self.check_growth(ended, emptied)
            self.assertEqual(total(ended, "beeline_bytes_total"), total(emptied, "beeline_bytes_total"))
            self.assertEqual(total(emptied, "beeline_port_up"), 1)  # the port's series goes on
            second = self.ring(BEELINE_STATS_DIR=str(ring.folder / "pages"))
            self.assertEqual(len(second.ranks), RANKS)
            until(lambda: total(exporter.scrape(), "beeline_bytes_total") > total(emptied, "beeline_bytes_total"),
                  "data of the new job")
            self.check_growth(emptied, exporter.scrape())
        # A process that begins afterwards knows nothing of the first job.
        self.assertLess(total(self.once(ring), "beeline_processes", state="ended"), RANKS)

    def test_a_rank_that_is_killed(self):
        ring = self.playing()
        with Exporter(ring.environment) as exporter:
            self.assertEqual(total(exporter.scrape(), "beeline_errors_total"), 0)
            ring.ranks[CULPRIT].kill()
            until(lambda: total(exporter.scrape(), "beeline_errors_total") >= 2, "the errors of its neighbors")

    def with_running(self, exporter, count):
        metrics = exporter.scrape()
        return metrics if total(metrics, "beeline_processes", state="running") == count else None

    def check_growth(self, before, after):
        for sample in before.samples:
            if before.types[sample.name] == "counter":
                now = total(after, sample.name, **sample.labels)
                self.assertGreaterEqual(now, sample.value, sample)

    def test_a_job_that_waits(self):
        ring = self.playing("sends-nothing")
        with Exporter(ring.environment) as exporter:
            waits = until(lambda: self.with_wait(exporter, 2), "a wait of two seconds")
            self.assertGreaterEqual(total(waits, "beeline_waiting_connections", reason="data"), 1)
            until(lambda: self.has_cause(exporter), "the cause")
            os.kill(ring.ranks[0].pid, signal.SIGSTOP)
            until(lambda: total(exporter.scrape(), "beeline_processes", state="stopped") == 1, "a stopped process")

    def has_cause(self, exporter):
        causes = [sample.labels for sample in exporter.scrape().samples if sample.name == "beeline_hang_cause_seconds"]
        for labels in causes:
            self.assertEqual((labels["rank"], labels["nccl_job"]), (str(CULPRIT), ""))
            self.assertIn(labels["reason"], ("no-send", "no-receive"))
        return causes

    def with_wait(self, exporter, seconds):
        metrics = exporter.scrape()
        longest = max(sample.value for sample in metrics.samples if sample.name == "beeline_longest_wait_seconds")
        return metrics if longest >= seconds else None

    def test_a_port_that_goes_down(self):
        ring = self.ring()
        # The tree of the host of that rank, in which softnic shows the state of the port.
        ring.environment["BEELINE_SYSFS_ROOT"] = str(
            pathlib.Path(os.environ["BEELINE_SYSFS_ROOT"]).parent / f"h{CULPRIT}")
        ring.wait_for_pages()
        with Exporter(ring.environment) as exporter:
            self.assertEqual(total(exporter.scrape(), "beeline_port_up"), 1)
            port = f"h{CULPRIT}/softnic0"
            self.addCleanup(subprocess.run, [SOFTNIC, "ctl", port, "up"], check=False)
            subprocess.run([SOFTNIC, "ctl", port, "down"], check=True)
            until(lambda: total(exporter.scrape(), "beeline_paths", state="down") >= 2, "paths that are down")
            self.assertEqual(total(exporter.scrape(), "beeline_port_up"), 0)
            self.assertGreaterEqual(total(exporter.scrape(), "beeline_path_failures_total"), 2)
            subprocess.run([SOFTNIC, "ctl", port, "up"], check=True)
            until(lambda: total(exporter.scrape(), "beeline_paths", state="down") == 0, "paths that are up")

    def test_mistakes(self):
        environment = self.without_processes()
        for words, reason in ((["--dir", "/none"], "cannot read /none"),
                              (["--http", "0", "--dir", "/none"], "cannot read /none"),
                              (["--textfile", "/none"], "/none/beeline.prom: cannot be written: No such file"),
                              (["--textfile", "/none", "--seconds", "1"], "create its folder first"),
                              (["--textfile", "/tmp", "--seconds", "0"], "write 0.1 to 3600"),
                              (["--textfile", "/tmp", "--http", "0"], "choose one of them"),
                              (["--seconds", "1"], "only with --textfile"),
                              (["--http", "65536"], "write a port")):
            done = subprocess.run([BEELINE, "export", *words], env=environment, capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    main()
