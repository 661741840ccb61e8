#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rings of four ranks that hang: `beeline hang` names the rank that the others wait for, and why.

Usage: hang_test.py BEELINE SOFTNIC PLUGIN HANG_RANK"""

import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import threading
import unittest

from ring import BEELINE, CULPRIT, RANKS, SOFTNIC, RingTest, hosts, main, may_begin


# Role and state in the page.
SEND_READY = (1, 2)
RECEIVE_READY = (2, 2)
LISTEN = 3


class Ras:
    """Answers as the RAS of NCCL 2.28 does: the ranks, of which one has called one collective less."""

    def __init__(self, pids):
        self.asked = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        ranks = [{"rank": rank, "host": "10.0.0.5", "pid": pid, "cuda_dev": rank, "nvml_dev": rank,
                  "status": {"init_state": 0, "async_error": 0}, "collective_counts": {
                      "Broadcast": 1, "AllReduce": 7 if rank == CULPRIT else 8}} for rank, pid in pids.items()]
        self.answer = "SERVER PROTOCOL 2\nOK\nOK\n" + json.dumps(
            {"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [
                {"hash": "0x9c1f", "size": len(pids), "ranks": ranks, "missing_ranks": []}]})
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            with client:
                question = ""
                while not question.endswith("STATUS\n"):
                    question += client.recv(1000).decode()
                self.asked.append(question)
                client.sendall(self.answer.encode())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


class Hang(RingTest):
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
        self.assertEqual([cause.get("process", {}).get("rank") for cause in causes], [CULPRIT], causes)
        self.assertIn(causes[0]["reason"], reasons)
        _, text, _ = ring.hang()
        self.assertIn(f"CAUSE    rank {CULPRIT} (pid {ring.ranks[CULPRIT].pid}) ", text)
        return causes[0]

    def test_it_posts_no_receive(self):
        ring = self.ring("posts-no-receive")
        self.check_culprit(ring, {"no-receive", "no-send"})
        ring.wait_for_line("has waited [0-9]+ s for the peer to post a receive")

    def test_it_sends_nothing(self):
        ring = self.ring("sends-nothing")
        self.check_culprit(ring, {"no-send", "no-receive"})
        ring.wait_for_line("has waited [0-9]+ s for the data of 1 receive")

    def test_it_calls_nothing(self):
        ring = self.ring("calls-nothing")
        cause = self.check_culprit(ring, {"calls-nothing"})
        self.assertIn("open request", cause["fact"])
        ring.wait_for_line("the application has made no call for this connection for [0-9]+ s")

    def test_it_is_stopped(self):
        ring = self.ring()
        ring.wait_for_pages()
        culprit = ring.ranks[CULPRIT]
        culprit.send_signal(signal.SIGSTOP)
        cause = self.check_culprit(ring, {"stopped"})
        self.assertEqual(cause["advice"], f"kill -CONT {culprit.pid}")
        culprit.send_signal(signal.SIGCONT)
        ring.wait_for(lambda: not ring.report()["waits"], "an end of the waits")

    def test_it_waits_in_the_kernel(self):
        cause = self.check_culprit(self.ring("blocked"), {"no-receive", "no-send"})
        self.assertIn("; 1 thread of it waits in the kernel and takes no signal (state D)", cause["fact"])
        self.assertNotIn("gdb", cause["advice"])

    def test_it_has_not_begun(self):
        ring = self.ring("not-begun")
        causes = self.causes(ring)
        self.assertEqual([(cause["reason"], cause["process"]["rank"]) for cause in causes], [("not-begun", CULPRIT)])

    def test_for_a_watchdog(self):
        ring = self.ring()
        ring.wait_for_pages()
        self.assertEqual(ring.hang("--for", "3"), (0, "no process has waited for the same all the time\n", ""))
        ring.ranks[CULPRIT].send_signal(signal.SIGSTOP)
        ring.wait_for(lambda: ring.report()["causes"], "a cause")
        status, text, _ = ring.hang("--for", "1")
        self.assertEqual(status, 1)
        self.assertIn(f"CAUSE    rank {CULPRIT} (pid {ring.ranks[CULPRIT].pid}) is stopped", text)
        # It goes on while the command looks.
        resume = threading.Timer(1, ring.ranks[CULPRIT].send_signal, [signal.SIGCONT])
        resume.start()
        self.assertEqual(ring.hang("--for", "60")[0], 0)
        resume.join()

    def test_what_nccl_has_counted(self):
        ring = self.ring("sends-nothing")
        with Ras({rank: process.pid for rank, process in enumerate(ring.ranks)}) as ras:
            self.causes(ring)
            status, text, error = ring.hang("--ras", ras.address)
            self.assertEqual((status, error), (1, ""))
            self.assertIn(f"\nCollectives, as NCCL counts them\n  communicator 0x9c1f: rank {CULPRIT} (pid "
                          f"{ring.ranks[CULPRIT].pid} on 10.0.0.5) has not called AllReduce 8; 3 others have\n", text)
            report = json.loads(ring.hang("--json", "--ras", ras.address)[1])
            self.assertEqual(len(report["collectives"]), 1)
            self.assertEqual(set(ras.asked), {"CLIENT PROTOCOL 2\nTIMEOUT 5\nSET FORMAT json\nVERBOSE STATUS\n"})
        for words in ("--ras", "none"), ("--ras", ras.address):  # nobody listens there any more
            self.assertNotIn("Collectives", ring.hang(*words)[1])

    def kill_culprit(self, ring):
        ring.wait_for_pages()
        culprit = ring.ranks.pop(CULPRIT)
        culprit.kill()
        culprit.wait()
        return culprit.pid

    def test_it_is_killed_and_the_others_catch_the_error(self):
        ring = self.ring(CATCHES_ERRORS="1")
        pid = self.kill_culprit(ring)
        # The neighbors have lost it, and the fourth waits for them.
        cause = self.check_cause_of_death(ring, pid, lambda causes: causes[0]["processes_waiting"] == RANKS - 1)
        self.assertRegex(cause["fact"], "has noticed it first, [0-9] s ago")
        status, text, _ = ring.hang()
        self.assertEqual(status, 1)
        self.assertIn(f"CAUSE    rank {CULPRIT} (pid {pid}) has ended, without closing its connections", text)

    def test_it_is_killed_and_the_others_end(self):
        ring = self.ring()
        pid = self.kill_culprit(ring)
        for rank in ring.ranks:
            rank.wait()
        ring.ranks.clear()
        self.check_cause_of_death(ring, pid, lambda causes: causes)
        status, text, _ = ring.hang()
        self.assertEqual(status, 3)
        self.assertTrue(text.startswith("no running process uses Beeline; 4 ended and left pages"), text)

    def check_cause_of_death(self, ring, pid, is_complete):
        """It is the only cause at each moment."""
        found = []

        def is_named():
            found[:] = ring.report()["causes"]
            for cause in found:
                self.assertEqual((cause["reason"], cause["process"]["rank"], cause["process"]["pid"]),
                                 ("ended", CULPRIT, pid), found)
            return found and is_complete(found)

        ring.wait_for(is_named, "the death of a rank")
        self.assertEqual(len(found), 1)
        return found[0]

    def test_its_listener_is_gone(self):
        ring = self.ring("listener-gone")
        causes = self.causes(ring)
        culprit = CULPRIT - 1  # which cannot connect, and hangs
        self.assertEqual([(cause["reason"], cause["process"].get("rank")) for cause in causes],
                         [("connection-failed", culprit)], causes)
        self.assertRegex(causes[0]["fact"], "has a connection that failed, to softnic0:1 on .* [(](peer closed|"
                                            "system: Connection refused)[)], and waits for nothing itself")
        _, text, _ = ring.hang()
        self.assertIn(f"CAUSE    rank {culprit} (pid {ring.ranks[culprit].pid}) has a connection that failed", text)

    def test_it_is_absent(self):
        ring = self.ring("absent")
        causes = self.causes(ring)
        self.assertEqual([cause["reason"] for cause in causes], ["rank-missing"], causes)
        self.assertNotIn("process", causes[0])
        self.assertIn(f"rank {CULPRIT} of {RANKS} has no running process", causes[0]["fact"])
        self.assertRegex(causes[0]["fact"], f"; rank {CULPRIT - 1} .* has made no connection yet")
        _, text, _ = ring.hang()
        self.assertTrue(text.startswith("3 processes with 3 connections: "), text)  # listeners are none
        self.assertRegex(text, f"rank {CULPRIT + 1} .*: waits [0-9]+ s for a connection to accept")

    def test_packets_are_lost(self):
        # Without recovery, the device tries for half an hour.
        ring = self.ring("plays", BEELINE_RECOVERY="0", BEELINE_TIMEOUT="24")
        ring.wait_for_pages()
        self.ctl("blackhole")
        self.addCleanup(self.ctl, "resume")
        causes = self.causes(ring)
        # Of the two connections of this rank, one may wait for a credit alone.
        self.assertLessEqual({cause["reason"] for cause in causes}, {"packets-lost", "credit-lost"}, causes)
        for cause in causes:
            self.assertIn(f"rank {CULPRIT} ", cause["fact"])

    def test_a_port_is_down(self):
        ring = self.ring()
        ring.wait_for_pages()
        self.ctl("down")
        self.addCleanup(self.ctl, "up")
        # One with each neighbor, or one alone: the culprit may call only one of its two connections by then. The paths of
        # the neighbors have failed, too, but not their ports.
        causes = self.causes(ring)
        for cause in causes:
            self.assertEqual(cause["reason"], "no-path")
            self.assertTrue(cause["fact"].endswith(f": softnic0:1 of rank {CULPRIT} (pid {ring.ranks[CULPRIT].pid}) is DOWN"),
                            cause)

    @staticmethod
    def ctl(command):
        """To the port of the culprit."""
        subprocess.run([SOFTNIC, "ctl", f"h{CULPRIT}/softnic0", command], check=True)

    @staticmethod
    def discarded():
        """How many messages ports have discarded."""
        log = subprocess.run([SOFTNIC, "log"], check=True, capture_output=True, text=True).stdout
        return log.count("discard hits queue pair")

    def lose_credit(self, ring):
        """One credit of the culprit, for the rank before it. A credit is a write of 64 bytes, and the data has 65536."""
        before = self.discarded()
        self.ctl("discard=64@1")
        ring.wait_for(lambda: self.discarded() == before + 1, "a credit that is lost")

    def test_a_credit_is_lost(self):
        ring = self.ring()
        ring.wait_for_pages()
        self.lose_credit(ring)
        cause = self.check_culprit(ring, {"credit-lost"})
        self.assertEqual(cause["processes_waiting"], RANKS - 1)
        self.assertRegex(cause["fact"], f"^rank {CULPRIT} .* has posted a receive, and rank {CULPRIT - 1} .* wants to send "
                                        "and has not been told of it for [0-9]+ s: the credit from ")
        # What the report advises.
        for command, line in ("down", "went DOWN: [12] connections? waits?,"), ("up", "[12] connections? uses? it again,"):
            self.ctl(command)
            ring.wait_for_line(line)
        ring.wait_for(lambda: not ring.report()["waits"], "an end of the waits")

    @unittest.skipUnless(os.geteuid() == 0, "only root has processes of other users")
    def test_a_page_with_the_number_of_a_process_of_somebody_else(self):
        ring = self.ring()
        ring.wait_for_pages()
        with subprocess.Popen(["sleep", "60"], user=65534) as other:
            self.addCleanup(other.kill)
            start = pathlib.Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
            page = next((ring.folder / "pages").iterdir())
            forged = page.with_name(f"beeline-{other.pid}-{start}")
            shutil.copy(page, forged)
            self.assertEqual(ring.hang()[1], "1 statistics page of root left out: the pid in the name of the file is "
                             "that of another user's process\n4 processes with 8 connections: none has waited for long\n")
            os.chown(forged, 65534, 65534)
            ring.folder.chmod(0o755)
            (ring.folder / "pages").chmod(0o755)
            # Which may not read softnic in a home directory. This command needs no device.
            environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            by_other = {"user": 65534, "env": environment, "capture_output": True, "text": True, "check": False}
            alone = subprocess.run([BEELINE, "hang", "--dir", str(ring.folder / "pages")], **by_other)
            self.assertEqual((alone.returncode, alone.stderr), (0, ""))
            self.assertIn("4 statistics pages of root left out: this user may not read them; run as root\n1 process ", alone.stdout)
            forged.rename(ring.folder / "forged")
            alone = subprocess.run(alone.args, **by_other)
            self.assertEqual((alone.returncode, alone.stdout), (2, ""))
            self.assertIn("no statistics page could be used\n4 statistics pages of root left out", alone.stderr)
            (ring.folder / "forged").rename(forged)
            self.assertIn("5 processes with 10 connections", ring.hang()[1])
            other.kill()
            other.wait()
            self.assertRegex(ring.hang()[1], "1 statistics page of .* left out: their processes have ended, .*\n4 processes ")
            self.assertRegex(ring.beeline("replay")[2], "1 statistics page of .* left out: their processes have ended")
            status, text, _ = ring.beeline("replay", str(forged))
            self.assertEqual((status, len(text.splitlines()) > 1), (0, True))

    def ring_of_hosts(self, way):
        """Each rank has a host name and a folder of pages of its own."""
        own_pages = ["sh", "-c", 'BEELINE_STATS_DIR="$BEELINE_STATS_DIR/{rank}" && mkdir "$BEELINE_STATS_DIR" && exec "$@"',
                     "sh"]
        return self.ring(way, begin=[*hosts(), *own_pages])

    def save(self, ring):
        """The files of all hosts that have begun, by rank."""
        files = {}
        for pages in (ring.folder / "pages").iterdir():
            files[int(pages.name)] = str(ring.folder / f"{pages.name}.json")
            self.assertEqual(ring.hang("--dir", str(pages), "--save", files[int(pages.name)]),
                             (0, "", f"wrote {files[int(pages.name)]}\n"))
        return files

    def causes_on_hosts(self, ring):
        """The files of all hosts, and the causes, once all ranks wait for them."""
        found = []

        def is_complete():
            files = self.save(ring)
            _, text, error = ring.hang("--json", *files.values())
            self.assertEqual(error, "")
            found[:] = [files, json.loads(text)["causes"]]
            return len(files) == RANKS and sum(one["processes_waiting"] for one in found[1]) == RANKS - 1

        ring.wait_for(is_complete, "causes for which all ranks wait")
        return found

    @unittest.skipUnless(may_begin(hosts()), "this user cannot give processes host names of their own")
    def test_on_several_hosts(self):
        ring = self.ring_of_hosts("sends-nothing")
        by_rank, causes = self.causes_on_hosts(ring)
        files = list(by_rank.values())
        self.assertEqual([(one["process"]["rank"], one["process"]["host"]) for one in causes],
                         [(CULPRIT, f"node{CULPRIT}")])
        self.assertIn(f" on node{CULPRIT}) has ", ring.hang(*files)[1])
        self.assertIn("elsewhere", ring.hang("--json", "--seconds", "0", by_rank[CULPRIT + 1])[1])
        for options, words in (((files[0], "--save", "-"), "leave out the files"),
                               (("--for", "1", files[0]), "leave out the files"), (("/none",), "/none: cannot be opened"),
                               (("/dev/zero",), "/dev/zero: larger than 256 MiB")):
            status, text, error = ring.hang(*options)
            self.assertEqual((status, text), (2, ""))
            self.assertIn(words, error)

    @unittest.skipUnless(may_begin(hosts()), "this user cannot give processes host names of their own")
    def test_a_credit_is_lost_between_hosts(self):
        ring = self.ring_of_hosts("plays")
        ring.wait_for(lambda: " with 8 connections" in ring.hang(*self.save(ring).values())[1], "two connections of each")
        self.lose_credit(ring)
        _, causes = self.causes_on_hosts(ring)
        self.assertEqual([(one["reason"], one["process"]["rank"], one["process"]["host"]) for one in causes],
                         [("credit-lost", CULPRIT, f"node{CULPRIT}")])

    def test_a_ring_that_goes_round(self):
        ring = self.ring()
        ring.wait_for_pages()
        for _ in range(100):
            self.assertEqual(ring.report(), {"causes": [], "waits": []})
        self.assertEqual(ring.hang(), (0, "4 processes with 8 connections: none has waited for long\n", ""))
        for page in (ring.folder / "pages").iterdir():
            self.assertEqual(sorted(self.slots(page)), [SEND_READY, RECEIVE_READY])

    @staticmethod
    def slots(page):
        """The role and the state of each slot that was ever used by a connection: see include/beeline/stats_page.h."""
        content = page.read_bytes()
        header_bytes, slot_bytes = struct.unpack_from("=II", content, 12)
        (used,) = struct.unpack_from("=I", content, 36)
        places = [header_bytes + number * slot_bytes for number in range(used)]
        slots = [(struct.unpack_from("=I", content, place + 16)[0], struct.unpack_from("=I", content, place + 4)[0])
                 for place in places]
        return [slot for slot in slots if slot[0] != LISTEN]

    def test_mistakes(self):
        ring = self.ring()
        for options, words in ((["--dir", "/none"], "cannot read /none"), (["--seconds", "-1"], "write 0 to 86400")):
            status, text, error = ring.beeline("hang", *options)
            self.assertEqual((status, text), (2, ""))
            self.assertIn(words, error)

    def test_nobody_waits_is_not_said_of_what_was_not_read(self):
        ring = self.ring()
        ring.wait_for_pages()
        self.assertEqual(ring.hang("--dir", str(ring.folder)), (3, "no running process uses Beeline\n", ""))
        page = next((ring.folder / "pages").iterdir())
        other = ring.folder / page.name
        content = bytearray(page.read_bytes())
        content[8] += 1  # the version
        other.write_bytes(content)
        for command in ("hang",), ("hang", "--json"), ("top", "--once"), ("replay",):
            status, text, error = ring.beeline(*command, "--dir", str(ring.folder))
            self.assertEqual((status, text), (2, ""), command)
            self.assertRegex(error, "^beeline: no statistics page could be used\n1 statistics page of .* left out: they are "
                                    "of another version of Beeline; use the command")
        file = ring.folder / "saved"
        self.assertEqual(ring.hang("--dir", str(ring.folder), "--save", str(file))[0], 0)
        status, _, error = ring.hang(str(file))
        self.assertEqual(status, 2)
        self.assertIn("1 statistics page left out: they could not be read where", error)
        ring.end()
        status, text, error = ring.hang()
        self.assertEqual((status, error), (3, ""))
        self.assertTrue(text.startswith("no running process uses Beeline; 4 ended and left pages: see beeline replay\n"), text)


if __name__ == "__main__":
    main()
