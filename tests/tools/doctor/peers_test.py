#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline doctor` on several hosts of a softnic fabric: each fault is named, and nothing else.

Usage: peers_test.py BEELINE SOFTNIC"""

import itertools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "tools" / "beeline"))
import perf_strangers as strangers  # noqa: E402

NUMBERS = itertools.count()
TOKEN = "a-token-of-the-ranks"
# What this test finds, and no test of a single host. doctor_test.py compares it with the table of findings.
FINDINGS = {"host-not-examined", "host-not-probed", "host-unreachable", "rail-unreachable", "pair-unreachable", "rails-apart", "data-wrong",
            "rail-slow", "rails-below-their-ports", "pair-slow"}
# The rails are limited to it, so that their speeds do not depend on this machine.
RATE = "100M"
# A port with this partition key reaches none of the others, and they refuse it at once.
ALONE = "pkey=0x8001"
BEGIN = """
beeline() { "$BEELINE" doctor --seconds 0 "$@"; }
peer() { beeline --peer h1 --launch "env SOFTNIC_HOST={host} BEELINE_SYSFS_ROOT=$ROOTS/{host}" "$@"; }
cluster() {  # the host of each rank, then options for rank 0
  local hosts=($1) rank
  shift
  export SLURM_NTASKS=${#hosts[@]}
  for rank in $(seq 1 $((SLURM_NTASKS - 1))); do
    SLURM_PROCID=$rank SOFTNIC_HOST=${hosts[rank]} BEELINE_SYSFS_ROOT=$ROOTS/${hosts[rank]} \\
      beeline --cluster "$FOLDER/meeting" &
  done
  SLURM_PROCID=0 SOFTNIC_HOST=${hosts[0]} beeline --cluster "$FOLDER/meeting" "$@"
  local status=$?
  wait
  return $status
}
ctl() { "$SOFTNIC" ctl "$@"; }
ROOTS=$(dirname "$BEELINE_SYSFS_ROOT")
"""


def fabric(hosts, rails, gpus=0):
    text = f"""
[[host]]
name = "h[0-{hosts - 1}]"
numa_nodes = 1
[[host.device]]
name = "softnic[0-{rails - 1}]"
gbps = 100
rate = "{RATE}"
"""
    return text + (f'[[host.gpu]]\nname = "gpu[0-{gpus - 1}]"\n' if gpus else "")


class Peers(unittest.TestCase):
    @classmethod
    def tearDownClass(cls):
        # Removes the fabrics of which a doctor was the last process.
        subprocess.run([SOFTNIC, "ls"], stdout=subprocess.DEVNULL, check=False)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_on(self, text, script, *options):
        """Runs a shell script on host h0 of the fabric. Returns its exit status, its output and its errors."""
        file = self.folder / "fabric.toml"
        file.write_text(text)
        # The doctors of the last run may still be about to end, in a fabric of their own.
        done = subprocess.run(
            [SOFTNIC, "run", *options, "--name", f"peers-{os.getpid()}-{next(NUMBERS)}", "--fabric", file, "--", "bash", "-c", BEGIN + script],
            env={**os.environ, "BEELINE": BEELINE, "SOFTNIC": SOFTNIC, "FOLDER": str(self.folder)},
            capture_output=True, text=True, check=False, timeout=100)
        return done.returncode, done.stdout, done.stderr

    def found_on(self, text, script, *options):
        """The findings of a script that prints JSON, as ID and subject, and the whole document."""
        status, output, error = self.run_on(text, script, *options)
        try:
            report = json.loads(output)
        except ValueError:
            self.fail(f"status {status}, {output}{error}")
        found = {(f["id"], f["subject"]) for f in report["findings"] if f["severity"] != "unknown"}
        is_faulty = any(f["severity"] in ("warning", "failure") for f in report["findings"])
        self.assertEqual(status, 1 if is_faulty else 0, error)
        return found, report

    def test_two_healthy_hosts(self):
        found, report = self.found_on(fabric(2, 4), "peer --json")
        self.assertEqual(found, set())
        self.assertEqual({(p["a"], p["b"]) for p in report["pairs"]},
                         {(f"h0 softnic{a}", f"h1 softnic{b}") for a in range(4) for b in range(4)})
        for pair in report["pairs"]:
            self.assertLess(pair["gbytes_per_s"], 0.12)  # the rate of the fabric
            self.assertGreater(pair["gbytes_per_s"], 0.05)
            self.assertGreater(pair["round_trip_us"], 0)

    def test_each_fault_between_two_hosts_with_eight_rails_is_named_and_nothing_else(self):
        # Two limited members of a partition do not reach each other, and all others do.
        faults = """ctl h1/softnic6 rate=20M; ctl h0/softnic2 pkey=0x7fff; ctl h1/softnic5 pkey=0x7fff
            ctl h1/softnic4 gid=3:fe80::99/rocev1 gid=1:none
            """
        found, report = self.found_on(fabric(2, 8), faults + 'peer --json --svg "$FOLDER/rails.svg"')
        self.assertEqual(found, {("rail-slow", "h1 softnic6"), ("pair-unreachable", "h0 softnic2 and h1 softnic5"),
                                 ("gid-only-v1", "h1 softnic4 port 1")}, report["findings"])
        self.assertIn("partition keys 0x7fff", next(p["failure"] for p in report["pairs"] if p["failure"]))
        picture = ElementTree.parse(self.folder / "rails.svg")
        words = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(words.count("none"), 1)

    def test_the_odd_one_out_is_marked_in_the_table(self):
        faults = "ctl h0/softnic1 rate=20M; ctl h1/softnic2 blackhole; "
        status, text, _ = self.run_on(fabric(2, 3), faults + "peer")
        self.assertEqual(status, 1)
        self.assertTrue(text.startswith("h0, h1: 1 fault will keep jobs from running, 1 fault makes them slow or fra"))
        rows = [line.split() for line in text.splitlines() if line.startswith("softnic")]
        self.assertEqual([row[0] for row in rows], ["softnic0", "softnic1", "softnic2"] * 2)
        self.assertEqual(rows[1][2::2], ["slow", "slow"])
        self.assertEqual([row[-1] for row in rows], ["none"] * 6)

    def test_rails_that_are_all_slower_than_their_ports(self):
        # All of softnic is: it is not judged. The hosts of the second run seem to have cards.
        found, _ = self.found_on(fabric(2, 2), "peer --json")
        self.assertEqual(found, set())
        cards = 'for model in "$ROOTS"/*/class/infiniband/*/hca_type; do echo MT4129 >"$model"; done; '
        found, report = self.found_on(fabric(2, 2), cards + "peer --json")
        self.assertEqual(found, {("rails-below-their-ports", "rails of 100 Gb/s")})
        self.assertRegex(report["findings"][0]["fact"], r"move 0\.\d\d GB/s, the median of 4 pairs, .* carry 12\.5 GB/s")

    def test_a_rail_that_is_refused_and_one_without_gpu_memory(self):
        faults = f"ctl h1/softnic0 {ALONE}; ctl h0/softnic1 refuse-gpu=on; "
        found, report = self.found_on(fabric(2, 3, gpus=1), faults + "peer --json", "--softgpu")
        self.assertEqual({f for f in found if "unreachable" in f[0]},
                         {("rail-unreachable", "h1 softnic0"), ("rail-unreachable", "h0 softnic1 (GPU memory)")})
        self.assertEqual(sum(p["memory"] == "gpu" and not p["failure"] for p in report["pairs"]), 4)

    def test_networks_of_their_own_are_no_fault(self):
        # Each position has a partition of its own.
        partitions = "for n in 0 1 2; do ctl h0/softnic$n pkey=0x801$n; ctl h1/softnic$n pkey=0x801$n; done; "
        found, report = self.found_on(fabric(2, 3), partitions + "peer --json")
        self.assertEqual(found, {("rails-apart", "")})
        self.assertEqual(len(report["pairs"]), 6)  # once none is reached one position apart, no others are tried

    def test_wrong_data(self):
        # The first message with a content to compare is among these.
        for n in range(61, 70):
            found, _ = self.found_on(fabric(2, 1), f"ctl h0/softnic0 corrupt@{n}; peer --json")
            if found:
                break
        self.assertEqual(found, {("data-wrong", "h0 softnic0 and h1 softnic0")})

    def test_a_host_without_a_rail_and_one_that_no_rail_reaches(self):
        found, report = self.found_on(fabric(2, 1), "ctl h1/softnic0 down; peer --json")
        self.assertIn(("host-not-probed", "h1"), found)
        found, _ = self.found_on(fabric(2, 2), f"ctl h1/softnic0 {ALONE}; ctl h1/softnic1 {ALONE}; peer --json")
        self.assertEqual(found, {("host-unreachable", "h0")})
        self.assertEqual(report["pairs"], [])

    def test_a_cluster(self):
        found, report = self.found_on(fabric(4, 2), f"ctl h2/softnic1 {ALONE}; cluster 'h0 h1 h2 h3' --json")
        self.assertEqual(found, {("rail-unreachable", "h2 softnic1")})
        self.assertEqual([host["name"] for host in report["hosts"]], ["h0", "h1", "h2", "h3"])
        hosts = {(p["a"].split()[0], p["b"].split()[0]) for p in report["pairs"]}
        self.assertEqual(hosts, {("h0", "h1"), ("h2", "h3"), ("h0", "h2"), ("h1", "h3")})
        found, report = self.found_on(fabric(3, 2), "ctl h2/softnic0 rate=10M; cluster 'h0 h2 h1' --json")
        self.assertEqual(found, {("pair-slow", "h0 softnic0 and h2 softnic0")})
        self.assertEqual([host["name"] for host in report["hosts"]], ["h0", "h2", "h1"])

    def test_strangers_do_not_take_the_place_of_a_rank_nor_hold_it_up(self):
        script = f"""
exec {{crowd}}< <(exec python3 {ROOT}/tests/tools/beeline/perf_strangers.py "$FOLDER/meeting" crowd doctor 2>&1)
strangers=$!
export SLURM_NTASKS=2
SLURM_PROCID=0 beeline --cluster "$FOLDER/meeting" --json & rank_0=$!
read -r line <&"$crowd"
[[ $line == 'turned away' ]] || echo "$line"
SLURM_PROCID=1 SOFTNIC_HOST=h1 BEELINE_SYSFS_ROOT=$ROOTS/h1 beeline --cluster "$FOLDER/meeting"
wait "$rank_0"
status=$?
kill "$strangers"
exit "$status"
"""
        found, report = self.found_on(fabric(2, 1), script)
        self.assertEqual(found, set())
        self.assertEqual([host["name"] for host in report["hosts"]], ["h0", "h1"])

    @staticmethod
    def place_of(line):
        """The command and the address that the proofs of member_of() cover."""
        return "doctor", "127.0.0.1:%d" % line.getsockname()[1]

    def member_of(self, rank_0):
        """Runs a doctor as rank 1 of the rank 0 that this function is. Returns the status, the output and the errors."""
        with socket.create_server(("127.0.0.1", 0)) as listener, \
                subprocess.Popen(
                    [SOFTNIC, "run", "--name", f"member-{os.getpid()}-{next(NUMBERS)}", "--", BEELINE, "doctor", "--cluster",
                     "127.0.0.1:%d" % listener.getsockname()[1]],
                    env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "BEELINE_RENDEZVOUS_TOKEN": TOKEN},
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as member:
            listener.settimeout(60)
            with listener.accept()[0] as line:
                line.settimeout(60)
                rank_0(line)
            output, error = member.communicate(timeout=60)
            return member.returncode, output, error

    def test_a_member_tells_nothing_to_a_rank_0_without_the_token(self):
        def impostor(answer):
            def rank_0(line):
                challenge = strangers.received(line)
                self.assertEqual(len(challenge), strangers.DIGITS)
                strangers.send(line, answer(challenge, self.place_of(line)))
                self.assertIsNone(strangers.received(line))
            return rank_0
        random = strangers.ZEROS

        def proof(challenge, place, end=strangers.RANK_0, token=TOKEN):
            return random + strangers.proof(end, token, random, challenge, *place)
        for answer in (lambda challenge, place: challenge + challenge,
                       lambda challenge, place: proof(challenge, place, token="another token"),
                       lambda challenge, place: proof(challenge, place, end=strangers.OTHER_RANK),
                       # Of rank 0 of another run with the same token, passed on by the process that listens here.
                       lambda challenge, place: proof(challenge, ("perf", place[1])),
                       lambda challenge, place: proof(challenge, ("doctor", "127.0.0.2" + place[1].removeprefix("127.0.0.1")))):
            status, output, error = self.member_of(impostor(answer))
            self.assertEqual((status, output), (1, ""))
            self.assertIn("does not know BEELINE_RENDEZVOUS_TOKEN, or is not rank 0 of this run, so this rank has ended the exchange", error)
            self.assertNotIn(TOKEN, error)

    def test_a_member_takes_no_variable_and_no_library_from_rank_0(self):
        def rank_0(line):
            random = strangers.ZEROS
            challenge = strangers.received(line)
            place = self.place_of(line)
            proof = strangers.proof(strangers.RANK_0, TOKEN, random, challenge, *place)
            strangers.send(line, random + proof)
            said = strangers.received(line)
            proof, hello = said[:strangers.DIGITS], said[strangers.DIGITS:]
            self.assertEqual(proof, strangers.proof(strangers.OTHER_RANK, TOKEN, random, challenge, *place, hello))
            self.assertEqual(hello.split()[0], "1")
            strangers.send(line, "welcome")
            answers = line.makefile()
            for ask in (0, 1):
                request = {"ask": ask, "seconds": 0, "rail": 0, "in_gpu_memory": False, "is_first": False, "handle": "",
                           "variables": {"BEELINE_IBVERBS_LIB": "/none.so", "BEELINE_WOMBAT": "1"},
                           "plugin": "/none.so"}
                strangers.send(line, json.dumps(request))
                answer = answers.readline()
                self.assertNotRegex(answer, "none.so|WOMBAT")
            self.assertIn("libnccl-net-beeline.so", answer)
            self.assertEqual(len(json.loads(answer)["rails"]), 2)
        self.assertEqual(self.member_of(rank_0)[0], 0)

    def test_one_of_several_ranks_on_a_host_is_used(self):
        found, report = self.found_on(fabric(2, 1), "cluster 'h0 h1 h0 h1' --json")
        self.assertEqual(found, set())
        self.assertEqual([host["name"] for host in report["hosts"]], ["h0", "h1"])
        status, _, error = self.run_on(fabric(1, 1), "cluster 'h0 h0'")
        self.assertEqual(status, 1)
        self.assertIn("all ranks run on one host; start one on each host", error)

    def test_a_host_that_goes_away_is_named_and_the_others_are_probed(self):
        # Host h2 ends when it is asked for the first probe.
        (self.folder / "relay.py").write_text("""
import os, subprocess, sys
host, *command = sys.argv[1:]
environment = {**os.environ, "SOFTNIC_HOST": host,
               "BEELINE_SYSFS_ROOT": os.path.dirname(os.environ["BEELINE_SYSFS_ROOT"]) + "/" + host}
child = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True)
for line in sys.stdin:
    if host == "h2" and '"ask":3' in line:
        child.kill()
        sys.exit()
    child.stdin.write(line)
    child.stdin.flush()
""")
        (self.folder / "hosts").write_text("h0\nh1\nh2\nh3\n")
        found, report = self.found_on(
            fabric(4, 1), 'beeline --json --hostfile "$FOLDER/hosts" --launch "python3 $FOLDER/relay.py {host}"')
        self.assertEqual(found, {("host-not-probed", "h2")})
        self.assertEqual({(p["a"], p["b"]) for p in report["pairs"]},
                         {("h0 softnic0", "h1 softnic0"), ("h1 softnic0", "h3 softnic0")})

    def test_the_survey_goes_on_without_a_host_on_which_the_doctor_does_not_run(self):
        (self.folder / "start").write_text("""
[ "$1" = h1 ] && exit 255
host=$1; shift
SOFTNIC_HOST=$host BEELINE_SYSFS_ROOT=$(dirname "$BEELINE_SYSFS_ROOT")/$host exec "$@"
""")
        (self.folder / "hosts").write_text("h0\nh1\nh2\n")
        script = 'beeline --json --hostfile "$FOLDER/hosts" --launch "sh $FOLDER/start {host}"'
        found, report = self.found_on(fabric(3, 1), script)
        self.assertEqual(found, {("host-not-examined", "h1")})
        self.assertEqual({(p["a"], p["b"]) for p in report["pairs"]}, {("h0 softnic0", "h2 softnic0")})
        for command, words in (("false", "has ended"), ("cat #", "is the same version of beeline installed there?")):
            found, report = self.found_on(fabric(2, 1), f"beeline --json --peer h1 --launch '{command}'")
            self.assertEqual(found, {("host-not-examined", "h1")})
            self.assertIn(words, report["findings"][0]["fact"])

    def test_the_other_hosts_get_the_variables_on_their_command_line(self):
        # As ssh does it: a shell on the other host reads the command once more.
        (self.folder / "far").write_text("""
export SOFTNIC_HOST=$1 BEELINE_SYSFS_ROOT=$(dirname "$BEELINE_SYSFS_ROOT")/$1; shift
echo "$*" >"$FOLDER/command"
unset NCCL_IB_HCA
exec sh -c "$*"
""")
        script = """export NCCL_IB_HCA=^softnic1 NCCL_ALGO="ring; touch $FOLDER/run" NCCL_X='$(touch "$FOLDER"/run)'
            export BEELINE_RENDEZVOUS_TOKEN=TOKEN
            beeline --json --peer h1 --launch "%s" 2>"$FOLDER/error"
            """.replace("TOKEN", TOKEN)
        for launch in ("sh $FOLDER/far {host}", "env SOFTNIC_HOST={host} BEELINE_SYSFS_ROOT=$ROOTS/{host}"):
            found, report = self.found_on(fabric(2, 2), script % launch)
            self.assertEqual({f for f in found if "unreachable" in f[0]}, set())
            self.assertEqual([(p["a"], p["b"]) for p in report["pairs"]], [("h0 softnic0", "h1 softnic0")])
            error = (self.folder / "error").read_text()
            for name in ("NCCL_ALGO", "NCCL_X"):
                self.assertIn(f"{name} is not set on the other hosts, since a shell would change its value", error)
            self.assertFalse((self.folder / "run").exists())
            self.assertNotIn(TOKEN, error + json.dumps(report))
        command = (self.folder / "command").read_text()
        self.assertRegex(command, "^env .*NCCL_IB_HCA=\\^softnic1 .*beeline doctor --serve")
        self.assertNotRegex(command, f"BEELINE_SYSFS_ROOT|NCCL_ALGO|NCCL_X|{TOKEN}")

    def test_nothing_of_the_connection_reaches_the_environment_or_the_loader(self):
        # All that sets a variable or loads a library: from the command line, or literals.
        allowed = {
            "tools/doctor/peers/member.cc": ['::setenv("BEELINE_RECOVERY", "0", 1);', '::setenv("BEELINE_TIMEOUT", "14", 0);',
                                             'nccl::load_plugin("", 0)'],
            "tools/perf/rank_process.cc": ['::setenv("SOFTNIC_HOST", host.c_str(), 1);',
                                           '::setenv("BEELINE_SYSFS_ROOT", mine.c_str(), 1);',
                                           '::setenv("RANK", std::to_string(rank).c_str(), 1);',
                                           '::setenv("WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);',
                                           "::setenv(variable.name.c_str(), variable.value.c_str(), 1);",
                                           "nccl::load_plugin(options.plugin, options.abi)"],
        }
        found = {}
        for folder in ("tools/doctor/peers", "tools/perf", "tools/perf/patterns", "tools/ranks"):
            for file in sorted((ROOT / folder).glob("*.*")):
                if file.suffix not in (".cc", ".h"):
                    continue
                code = re.sub("//.*", "", file.read_text())
                calls = re.findall(r"[\w:]*(?:setenv|putenv)\b[^;]*;|[\w:]*load_plugin\([^)]*\)", code)
                calls += re.findall(r"[\w:]*(?:dlm?open|load_library|environ\s*=)\b", code)
                if calls:
                    found[str(file.relative_to(ROOT))] = calls
        self.assertEqual(found, allowed)

    def test_what_differs_between_hosts_is_shown(self):
        _, text, _ = self.run_on(fabric(2, 1), 'ctl h1/softnic0 gid=3:none; peer')
        self.assertIn("\nDifferent between the hosts\nsoftnic0 port 1: GID index 3", text)

    def test_mistakes(self):
        hosts = self.folder / "hosts"
        hosts.write_text("h1 slots=8\n# h2\n")
        for script, status, words in (
                ('printf "h1\\nh2\\n" >"$FOLDER/two"; beeline --hostfile "$FOLDER/two" --launch false', 1,
                 "the doctor runs on none of the hosts: on h1 it has ended"),
                ("beeline --peer 'h1;reboot'", 1, '"h1;reboot" is not the name of a host'),
                ("beeline --peer h1 --peer h1", 2, "h1 is named twice"),
                (r"""printf 'h\033[2J\n\xc2\x9b\nh\033[2J\n' >"$FOLDER/two"; beeline --hostfile "$FOLDER/two" """, 2,
                 "h?[2J is named twice"),
                ("beeline --hostfile /none", 2, "/none: cannot be opened: No such file"),
                ("beeline --hostfile /dev/zero", 2, "/dev/zero: larger than 32 MiB"),
                (f"beeline --hostfile {hosts}", 2, "names 1 host; write two or more"),
                ("beeline --svg x.svg", 2, "--svg draws the rails between hosts: add --peer HOST"),
                ("beeline --peer h1 --cluster x", 2, "choose one of them"),
                ("beeline --peer h1 --list", 2, "cannot be combined with --peer"),
                ("beeline --cluster x", 2, "was not started by srun, mpirun or torchrun"),
                ("RANK=0 WORLD_SIZE=1 beeline --cluster x", 2, "needs two processes or more"),
                ("RANK=1 WORLD_SIZE=2 beeline --cluster 127.0.0.1:7", 1, "export BEELINE_RENDEZVOUS_TOKEN=$(cat"),
                ("""echo "127.0.0.1:7 $(printf %032d 0)" >"$FOLDER/open"; chmod 604 "$FOLDER/open"
                    RANK=1 WORLD_SIZE=2 beeline --cluster "$FOLDER/open" """, 1, "is open to other users (mode 0604)"),
                ("""ln -s elsewhere "$FOLDER/link"; RANK=1 WORLD_SIZE=2 beeline --cluster "$FOLDER/link" """, 1,
                 "is a symbolic link")):
            with self.subTest(script=script):
                found, output, error = self.run_on(fabric(2, 1), script)
                self.assertEqual((found, output), (status, ""), error)
                self.assertIn(words, error)


if __name__ == "__main__":
    BEELINE, SOFTNIC = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main()
