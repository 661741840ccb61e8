#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline doctor` on recorded hosts: healthy ones, ones with faults, and files that are no records.

Usage: doctor_test.py BEELINE [DOCS TESTS] [--renew]
       DOCS are the pages to compare as well, and TESTS is meson's list of the tests, intro-tests.json.
       Without them, as for sanitized programs, which are slow to start: a third of the cases, and fewer
       hosts to compare
       --renew writes the golden files and the table in docs/troubleshooting.md anew"""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases  # noqa: E402
import hosts  # noqa: E402
import peers_test  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
GOLDENS = HERE / "goldens"
# Their whole output is compared.
SHOWN = ("healthy_roce", "container_of_docker_with_defaults", "two_tables_apart", "access_control_not_readable")
BEGIN, END = "<!-- the table of beeline doctor begins -->\n", "<!-- the table of beeline doctor ends -->\n"


def doctor(*arguments):
    done = subprocess.run([BEELINE, "doctor", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def built(name):
    change, options = cases.CASES[name]
    host = hosts.healthy(**options)
    return host, change(host)


def examined(name):
    """The exit status and the report of a case, and the findings that it should have."""
    host, expected = built(name)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as record:
        record.write(host.text())
        record.flush()
        status, text, error = doctor("--root", record.name, "--json")
    if error:
        raise AssertionError(f"{name}: {error}")
    return status, json.loads(text), expected


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        names = list(cases.CASES)[:: 1 if IS_COMPLETE else 3]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            cls.reports = dict(zip(names, pool.map(examined, names)))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, text):
        path = self.folder / "host.json"
        path.write_text(text)
        return str(path)

    def test_each_case_has_exactly_its_findings(self):
        for name, (status, report, expected) in self.reports.items():
            with self.subTest(case=name):
                found = [(f["id"], f["severity"], f["subject"]) for f in report["findings"]]
                self.assertEqual(sorted(found), sorted(expected))
                is_faulty = any(severity in (cases.FAILURE, cases.WARNING) for _, severity, _ in expected)
                self.assertEqual(status, 1 if is_faulty else 0)

    def test_each_finding_says_why_it_matters_and_from_where_it_is(self):
        for name, (_, report, _) in self.reports.items():
            for finding in report["findings"]:
                with self.subTest(case=name, id=finding["id"]):
                    self.assertNotRegex(finding["command"], r"(?<!\$)\{")
                    if finding["severity"] != cases.UNKNOWN:
                        self.assertTrue(finding["why"])
                    if finding["subject"]:
                        self.assertIn(finding["subject"].split(",")[0].split()[0], finding["fact"])

    def test_the_cause_and_the_command_are_the_right_ones(self):
        for name, id_, words, command in (
                ("long_timeout_of_a_site", "timeout-long", "after 137 s", "export BEELINE_TIMEOUT=14"),
                ("variables_that_only_nccl_reads", "settings-without-effect",
                 "NCCL_IB_OOO_RQ, NCCL_IB_RESILIENCY_PORT_FAILOVER", ""),
                ("preset_of_a_container", "plugin-not-named", "your container or site sets it, to another plugin (NVIDIA",
                 "export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline"),
                ("preset_of_a_site_in_a_record_of_an_older_version", "plugin-not-named", "aws-ofi-nccl",
                 "export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline"),
                ("job_that_needs_a_plugin_that_is_not_named", "plugin-not-named", "the job will not start",
                 "export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline"),
                ("way_back_to_the_transport_of_nccl", "plugin-not-named", "this environment does not use Beeline",
                 "export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline"),
                ("plugin_that_the_loader_does_not_find", "plugin-not-found", "cannot open shared object file",
                 "export NCCL_NET_PLUGIN=beeline LD_LIBRARY_PATH=/opt/beeline-0.2.0~dev/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"),
                ("plugin_that_the_loader_does_not_find_in_a_record_without_folders", "plugin-not-found", "cannot open", ""),
                ("healthy: HGX, RoCE, in-band Ethernet", "nic-for-other-traffic", "ens0f0 (mlx5_8 port 1) is 1500",
                 "export NCCL_IB_HCA='^=mlx5_8'"),
                ("one_address_on_two_interfaces", "address-twice", "the same address, 10.0.0.5", "ip -brief address"),
                ("one_adapter_of_eight_is_gone", "gpu-without-nic", "but 7 other GPUs have one (MT4129)", "lspci -tv"),
                ("sysfs_not_mounted", "no-rdma-device", "/sys/class is not there", "")):
            with self.subTest(case=name):
                _, report, _ = examined(name)
                [finding] = [finding for finding in report["findings"] if finding["id"] == id_]
                self.assertIn(words, finding["fact"])
                self.assertEqual(finding["command"], command)

    def test_a_wrong_plugin_is_corrected_where_it_is_set(self):
        for name, source, fix in (
                ("plugin_that_a_file_of_nccl_names_wrongly", "/etc/nccl.conf",
                 "set it in /etc/nccl.conf to what beeline env --k8s prints"),
                ("plugin_with_a_wrong_folder_beside_one_that_the_loader_finds", "",
                 "set it to beeline: the loader searches /opt/beeline-0.2.0~dev/lib")):
            with self.subTest(case=name):
                [finding] = [f for f in examined(name)[1]["findings"] if f["id"] == "plugin-not-found"]
                self.assertEqual((finding["source"], finding["fix"], finding["command"]), (source, fix, ""))

    def test_the_output_is_the_golden_one(self):
        for name, suffix, options in (*((name, "txt", ()) for name in SHOWN), (SHOWN[2], "json", ("--json",))):
            host, _ = built(name)
            text = doctor("--root", self.record(host.text()), *options)[1].replace(str(self.folder) + "/", "")
            golden = GOLDENS / f"{name}.{suffix}"
            if RENEW:
                golden.parent.mkdir(exist_ok=True)
                golden.write_text(text)
            with self.subTest(case=name, suffix=suffix):
                self.assertEqual(text, golden.read_text())

    def nodes(self, count, **changes):
        """Writes records of so many hosts. `changes`: what is different on a host, by its number."""
        for n in range(count):
            host = hosts.healthy(pairs=8)
            changes.get(f"node{n:02}", lambda _host: None)(host)
            (self.folder / f"node{n:02}.json").write_text(host.text())
        return sorted(map(str, self.folder.iterdir()))

    def test_sixty_four_hosts_are_compared_in_one_table(self):
        if not IS_COMPLETE:
            return self.assertEqual(doctor("--compare", *self.nodes(4))[0], 0)
        files = self.nodes(
            64,
            node07=lambda host: host.put("/sys/class/infiniband/mlx5_3/fw_ver", "28.36.1010"),
            node23=lambda host: host.environment("NCCL_IB_TC=106"),
            node41=lambda host: cases.limit_memory(host, 65536),
            node50=lambda host: host.port(5, "rate", "200 Gb/sec (2X NDR)"))
        status, text, _ = doctor("--compare", *files)
        self.assertEqual(status, 1)
        golden = GOLDENS / "sixty_four_hosts.txt"
        if RENEW:
            golden.write_text(text)
        self.assertEqual(text, golden.read_text())
        report = json.loads(doctor("--compare", *files, "--json")[1])
        self.assertEqual(len(report["hosts"]), 64)
        values = {row["fact"]: row["values"] for row in report["different"]}
        self.assertEqual(values["mlx5_3: firmware"][0], {"value": "28.36.1010", "hosts": ["node07"]})
        self.assertIn({"finding": "memlock-low", "hosts": ["node41"]}, report["found"])

    def test_the_list_of_findings_is_json_too(self):
        kinds = json.loads(doctor("--list", "--json")[1])
        table = doctor("--list")[1]
        self.assertGreater(len(kinds), 50)
        self.assertEqual([kind["id"] for kind in kinds if f"| `{kind['id']}` (" not in table], [])

    def test_equal_hosts_do_not_differ(self):
        def same_fault(host):
            cases.limit_memory(host, 65536)

        files = self.nodes(3, node00=same_fault, node01=same_fault, node02=same_fault)
        self.assertEqual(doctor("--compare", *files), (0, "3 hosts: no difference\n", ""))

    def test_a_device_that_one_host_lacks_is_a_difference(self):
        files = self.nodes(2, node01=lambda host: host.drop("/sys/class/infiniband/mlx5_7"))
        status, text, _ = doctor("--compare", *files)
        self.assertEqual(status, 1)
        self.assertRegex(text, r"(?m)^RDMA devices +[78] on node0[01]; [78] on node0[01]$")
        self.assertRegex(text, r"(?m)^mlx5_7: firmware +28.39.1002 on node00; none on node01$")
        self.assertEqual(doctor("--compare", files[0], "/nowhere")[0], 2)

    def test_a_folder_can_take_the_place_of_the_root(self):
        (self.folder / "proc" / "self").mkdir(parents=True)
        (self.folder / "proc" / "self" / "limits").write_text(hosts.LIMITS.format(memlock=65536))
        report = json.loads(doctor("--root", str(self.folder), "--json")[1])
        self.assertIn("memlock-low", [finding["id"] for finding in report["findings"]])

    def test_what_is_no_record_is_refused(self):
        for text, words in (("no JSON", "no record"), ("[1]", "no record"), ('{"a": 1}', "neither a text"),
                            ('{"..": "x"}', "not a name"), ('{"a/b": "x"}', "not a name"),
                            ('{"a": {"@link": "../../etc"}}', "leads out"),
                            ('{"a": {"@link": "/etc"}}', "leads out"),
                            ('{"a":' * 60 + '"x"' + "}" * 60, "too deep")):
            with self.subTest(text=text[:40]):
                status, output, error = doctor("--root", self.record(text))
                self.assertEqual((status, output), (2, ""))
                self.assertIn(words, error)
        # Each level of a document takes 80 bytes of memory, if all of them are kept.
        deep = self.record("[" * 10_000_000)
        # Sanitizers reserve terabytes of addresses.
        is_sanitized = re.search(b"__[at]san_init", pathlib.Path(BEELINE).read_bytes())
        limit = [] if is_sanitized else ["prlimit", f"--as={400 << 20}"]
        done = subprocess.run([*limit, BEELINE, "doctor", "--root", deep], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no record", done.stderr)
        status, _, error = doctor("--root", "/dev/zero")
        self.assertEqual(status, 2)
        self.assertIn("/dev/zero: larger than 32 MiB", error)
        status, _, error = doctor("--root", str(self.folder / "missing"))
        self.assertEqual(status, 2)
        self.assertIn("No such file", error)

    def test_a_record_shows_nothing_of_the_host_that_examines_it(self):
        secret = self.folder / "secret"
        secret.write_text("NCCL_NET=Secret\n")
        by_name = hosts.healthy()
        by_name.environment(f"NCCL_CONF_FILE=/../../../../../..{secret}")
        # The second link stays inside the record if the first one is taken for a folder.
        by_link = hosts.healthy()
        by_link.put("/d/e/f/up", {"@link": "../../.."})
        by_link.put("/etc/nccl.conf", {"@link": f"../d/e/f/up/../../../..{secret}"})
        for host in (by_name, by_link):
            status, text, error = doctor("--root", self.record(host.text()), "--json")
            self.assertEqual((status, error), (0, ""))
            self.assertNotIn("Secret", text)

    def test_no_command_has_characters_for_the_shell(self):
        host = hosts.healthy()
        folder = "/sys/fs/cgroup/system.slice/slurmd.service"
        host.put(f"{folder}/rdma.max", "mlx5_0';touch$IFS-x;' hca_handle=1")
        host.put(f"{folder}/rdma.current", "mlx5_0';touch$IFS-x;' hca_handle=1")
        report = json.loads(doctor("--root", self.record(host.text()), "--json")[1])
        self.assertEqual([(f["id"], f["command"]) for f in report["findings"]], [("rdma-cgroup-limit", "")])

    def test_mistakes_in_the_command_line(self):
        for arguments in (("--list", "--all"), ("--record", "x", "--root", "y"), ("--with-addresses",),
                          ("--seconds", "-1"), ("--record", "x", "--json"), ("--compare", "x"),
                          ("--compare", "x", "y", "--all")):
            with self.subTest(arguments=arguments):
                self.assertEqual(doctor(*arguments)[0], 2)


class Pages(unittest.TestCase):
    def test_no_command_may_cut_a_host_off_from_its_network(self):
        rows = [line.split(" | ") for line in doctor("--list")[1].splitlines() if line.startswith("| `")]
        commands = [row[2].split("`")[1] for row in rows if row[2].startswith("`")]
        self.assertGreater(len(commands), 30)
        for command in commands:
            self.assertNotRegex(command, r"ip .*\b(mtu|down|delete|flush)\b|net\.ipv[46]|devlink|reboot|rmmod|modprobe -r|grub")

    def test_each_kind_of_finding_has_a_case(self):
        status, text, _ = doctor("--list")
        self.assertEqual(status, 0)
        kinds = set(re.findall(r"^\| `([a-z0-9-]+)`", text, re.M))
        found = {finding for name in cases.CASES for finding, _, _ in built(name)[1]}
        self.assertEqual(kinds, found | peers_test.FINDINGS)

    def test_the_page_has_the_table(self):
        page = DOCS / "troubleshooting.md"
        before, rest = page.read_text().split(BEGIN)
        table, after = rest.split(END)
        made = "\n" + doctor("--list")[1] + "\n"
        if RENEW:
            page.write_text(before + BEGIN + made + END + after)
        else:
            self.assertEqual(table, made, "beeline doctor --list says something else: doctor_test.py --renew")

    def test_the_page_of_complaints_names_findings_and_tests_that_exist(self):
        known = set(re.findall(r"^\| `([a-z0-9-]+)`", doctor("--list")[1], re.M))
        known |= {test["name"] for test in json.loads(TESTS.read_text())}
        rows = [line.split("|") for line in (DOCS / "why.md").read_text().splitlines() if line.startswith("| ")]
        named = {name for row in rows for name in re.findall(r"`([^`]+)`", row[-2])}
        self.assertEqual(named - known, set())
        self.assertGreater(len(named), 50)


if __name__ == "__main__":
    RENEW = "--renew" in sys.argv
    BEELINE, *paths = [argument for argument in sys.argv[1:] if argument != "--renew"]
    IS_COMPLETE = bool(paths)
    if paths:
        DOCS, TESTS = map(pathlib.Path, paths)
    unittest.main(argv=[sys.argv[0], "Doctor", *(["Pages"] if paths else [])])
