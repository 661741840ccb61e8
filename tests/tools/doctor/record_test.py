#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline doctor` on the live host of a fabric: the plugin that NCCL would load, and `--record`: a record has the findings of its host, and no addresses unless they are wanted.

Usage: record_test.py BEELINE SOFTNIC PLUGIN BAD_PLUGIN"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

# The fabrics are idle, so their counters need not be watched for long.
QUICKLY = ("--seconds", "0.1")
FABRICS = pathlib.Path(__file__).resolve().parents[2] / "fabrics"


class OnFabric(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "host.json"

    def run_on(self, fabric, script, *arguments, **variables):
        """Runs a shell script on a host of the fabric; its arguments begin with the beeline command."""
        done = subprocess.run(
            [SOFTNIC, "run", "--name", f"record-{os.getpid()}", "--fabric", FABRICS / f"{fabric}.toml", "--",
             "sh", "-c", script, "sh", BEELINE, *map(str, arguments)],
            env={**os.environ, **variables}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class Record(OnFabric):
    def test_a_record_has_the_findings_of_its_host(self):
        # In asymmetric.toml one NIC is slower than the other. Its MTU is smaller as well, but it is far from the GPU.
        for fabric, problems in (("asymmetric", {"port-slow"}), ("dgx-8rail", set()),
                                 ("ib-2x2", set())):
            with self.subTest(fabric=fabric):
                live = json.loads(self.run_on(
                    fabric, '"$1" doctor --seconds 0.1 --record "$2"; "$1" doctor --seconds 0.1 --json; true',
                    self.file))
                recorded = json.loads(subprocess.run(
                    [BEELINE, "doctor", "--root", self.file, "--json"], capture_output=True, check=False).stdout)
                self.assertEqual(live["findings"], recorded["findings"])
                self.assertEqual({f["id"] for f in live["findings"] if f["severity"] in ("warning", "failure")},
                                 problems)

    def test_addresses_are_replaced_unless_they_are_wanted(self):
        variables = {"NCCL_IB_ADDR_RANGE": "192.168.77.0/24", "LD_LIBRARY_PATH": "/home/somebody/lib",
                     "NCCL_COMM_ID": "head.example:1234", "NCCL_DEBUG_FILE": "/users/alice/x", "NCCL_X": "2001:db9::7",
                     "BEELINE_Y": "a\nNCCL_NET=Socket",
                     "SECRET_TOKEN": "hunter2"}
        for options, is_there in ((), False), (("--with-addresses",), True):
            with self.subTest(options=options):
                self.run_on("dgx-8rail", '"$@"', "doctor", "--record", self.file, *QUICKLY, *options, **variables)
                text = self.file.read_text()
                tree = json.loads(text)
                port = tree["sys"]["class"]["infiniband"]["softnic0"]
                self.assertIn("@link", port)
                for address in ("192.168.77.0", "/home/somebody", "head.example", "alice", "2001:db9::7",
                                self.hardware_address()):
                    self.assertEqual(address in text, is_there, address)
                self.assertIn("NCCL_IB_ADDR_RANGE=", tree["environment"])
                self.assertNotIn("hunter2", text)
                self.assertNotIn("\nNCCL_NET=", tree["environment"])

    def hardware_address(self):
        return self.run_on("dgx-8rail", 'cat "$BEELINE_SYSFS_ROOT/class/net/eth0/address"').strip()

    def test_a_counter_that_grows_is_recorded_as_it_was_before_and_after(self):
        port = "class/infiniband/x0/ports/1"
        counter = self.file.parent / port / "counters" / "symbol_error"
        counter.parent.mkdir(parents=True)
        counter.write_text("5\n")

        def grow():
            # Until the second reading, and after it.
            while not has_ended.wait(0.01):
                part = counter.with_suffix(".new")
                part.write_text(f"{int(counter.read_text()) + 1}\n")
                part.rename(counter)

        has_ended = threading.Event()
        growing = threading.Thread(target=grow)
        growing.start()
        try:
            subprocess.run([BEELINE, "doctor", "--record", self.file, "--seconds", "0.3"],
                           env={**os.environ, "BEELINE_SYSFS_ROOT": str(self.file.parent)}, check=True,
                           capture_output=True)
        finally:
            has_ended.set()
            growing.join()
        tree = json.loads(self.file.read_text())

        def value(at):
            for name in ("sys", *port.split("/"), "counters", "symbol_error"):
                at = at[name]
            return int(at)

        self.assertLess(value(tree), value(tree["later"]))

    def ipv4_gids(self, *options):
        """All GIDs with an IPv4 address, in the order of the record, as (subnet of 24 bits, rest)."""
        self.run_on("roce-2x2", '"$@"', "doctor", "--record", self.file, *QUICKLY, *options)
        gids = []

        def collect(tree):
            for name, value in tree.items():
                if name == "gids":
                    gids.extend(text.strip() for text in value.values() if ":ffff:" in text)
                elif isinstance(value, dict):
                    collect(value)

        collect(json.loads(self.file.read_text()))
        return [(gid[-9:-2], gid[-2:]) for gid in gids]

    def test_replaced_addresses_are_in_the_same_relations(self):
        real, replaced = self.ipv4_gids("--with-addresses"), self.ipv4_gids()
        self.assertGreater(len({subnet for subnet, _ in real}), 1)
        self.assertEqual([rest for _, rest in real], [rest for _, rest in replaced])
        pairs = set(zip((subnet for subnet, _ in real), (subnet for subnet, _ in replaced)))
        self.assertEqual(len(pairs), len({subnet for subnet, _ in real}))
        self.assertEqual(len(pairs), len({subnet for _, subnet in pairs}))


class LoadedPlugin(OnFabric):
    """The plugin is loaded as NCCL would, in the user's own environment, and for no record."""

    def found(self, script='"$1" doctor --seconds 0 --json; true', *arguments, **variables):
        # Meson puts the folder of the plugin into it.
        report = json.loads(self.run_on("dgx-8rail", script, *arguments, **{"LD_LIBRARY_PATH": "", **variables}))
        return {(f["id"], f["severity"], f["command"]) for f in report["findings"] if f["id"].startswith("plugin-")}

    def test_a_plugin_that_the_loader_does_not_find(self):
        command = f"export NCCL_NET_PLUGIN=beeline LD_LIBRARY_PATH={PLUGIN.parent}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
        self.assertEqual(self.found(NCCL_NET_PLUGIN="beeline"), {("plugin-not-found", "failure", command)})
        self.assertEqual(self.found(NCCL_NET_PLUGIN="beeline", LD_LIBRARY_PATH=str(self.file.parent)),
                         {("plugin-not-found", "failure", command)})
        self.assertEqual(
            self.found('eval "$2"; "$1" doctor --seconds 0 --json; true', command, NCCL_NET_PLUGIN="beeline"), set())
        self.assertEqual(self.found(NCCL_NET_PLUGIN=f"none-such,{PLUGIN}"), set())

    def test_a_misspelled_name_is_a_failure_if_the_job_needs_beeline(self):
        name = "export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline"
        self.assertEqual(self.found(NCCL_NET_PLUGIN="beelin", NCCL_NET="Beeline"), {("plugin-not-named", "failure", name)})
        self.assertEqual(self.found(NCCL_NET="Beeline"), {("plugin-not-named", "failure", name)})
        self.assertEqual(self.found(NCCL_NET_PLUGIN="beelin"), {("plugin-not-named", "warning", name)})
        self.assertEqual({row[:2] for row in self.found(NCCL_NET_PLUGIN="Beeline")}, {("plugin-not-found", "failure")})

    def test_a_library_that_is_not_the_installed_plugin(self):
        copy = self.file.with_name(PLUGIN.name)
        folder = {"NCCL_NET_PLUGIN": "beeline", "LD_LIBRARY_PATH": str(copy.parent)}
        copy.write_bytes(PLUGIN.read_bytes())
        self.assertEqual(self.found(**folder), set())
        copy.write_bytes(PLUGIN.read_bytes() + b"x")
        self.assertEqual(self.found(**folder), {("plugin-other-file", "note", "")})
        copy.write_bytes(b"no library")
        self.assertEqual({(id_, severity) for id_, severity, _ in self.found(**folder)}, {("plugin-not-found", "failure")})

    def test_a_plugin_whose_constructor_does_not_return(self):
        for end, words in (("abort", "died of signal 6 (Aborted)"), ("exit", "ended its process with status 3"),
                           ("hang", "did not return within 10 s")):
            with self.subTest(end=end):
                report = json.loads(self.run_on(
                    "dgx-8rail", '"$1" doctor --seconds 0 --record "$2" && "$1" doctor --seconds 0 --json; true',
                    self.file, NCCL_NET_PLUGIN=str(BAD_PLUGIN), BAD_PLUGIN=end))
                [finding] = [finding for finding in report["findings"] if finding["id"] == "plugin-not-named"]
                self.assertIn(f"cannot load the plugin {BAD_PLUGIN}: it {words}", finding["fact"])
                self.assertIn(words, json.loads(self.file.read_text())["plugins"])

    def test_a_record_has_the_plugin_that_a_file_of_nccl_names(self):
        conf = self.file.with_name("nccl.conf")
        conf.write_text("NCCL_NET_PLUGIN=beeline\n")
        self.run_on("dgx-8rail", '"$@"', "doctor", "--record", self.file, *QUICKLY, NCCL_CONF_FILE=str(conf),
                    LD_LIBRARY_PATH=str(PLUGIN.parent))
        self.assertIn("try beeline\nnet Beeline\n", json.loads(self.file.read_text())["plugins"])
        self.assertNotIn("plugin-", subprocess.run([BEELINE, "doctor", "--root", self.file, "--json"], check=False,
                                                   capture_output=True, text=True).stdout)

    def test_a_record_loads_nothing(self):
        self.file.write_text(json.dumps({"environment": f"NCCL_NET_PLUGIN={PLUGIN}\n", "proc": {}}))
        for arguments, is_loaded in ((("--root", self.file), False), (("--seconds", "0"), True)):
            with self.subTest(arguments=arguments):
                done = subprocess.run([BEELINE, "doctor", *arguments], capture_output=True, text=True, check=False,
                                      env={**os.environ, "NCCL_NET_PLUGIN": str(PLUGIN), "LD_DEBUG": "files"})
                self.assertEqual(f"calling init: {PLUGIN}" in done.stderr, is_loaded)


if __name__ == "__main__":
    BEELINE, SOFTNIC = sys.argv[1:3]
    PLUGIN, BAD_PLUGIN = (pathlib.Path(argument).resolve() for argument in sys.argv[3:5])
    unittest.main(argv=sys.argv[:1])
