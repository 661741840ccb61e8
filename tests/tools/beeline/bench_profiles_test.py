#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the profiles in nccl-tests-config/, and of the errors of scripts/bench for invalid ones."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "scripts" / "benchmark")]
sys.dont_write_bytecode = True

import profiles  # pylint: disable=wrong-import-position
from errors import Misuse  # pylint: disable=wrong-import-position
from sizes import parse_range, range_text, size_text  # pylint: disable=wrong-import-position

PARAMETERS = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
OURS = set(re.findall(r"(?m)^## (BEELINE_\w+)$", PARAMETERS))
HONORED = set(re.findall(r"honors `(NCCL_\w+)`", PARAMETERS))
# The variables of NCCL that a benchmark needs, and the variable of nccl-tests that selects a GPU.
OF_NCCL = {"NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_NET_PLUGIN_REF_COUNT", "NCCL_NET_GDR_LEVEL",
           "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS",
           "NCCL_MNNVL_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_RAS_ENABLE", "NCCL_TESTS_DEVICE"}


# Variables that only documents mention. NCCL_HOSTID is not documented by NCCL.
OF_DOCUMENTS = OF_NCCL | {"NCCL_TESTS_HOME", "NCCL_TOPO_FILE", "NCCL_NET_MERGE_LEVEL", "NCCL_NET_FORCE_MERGE",
                          "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_PROTO", "NCCL_ALGO", "NCCL_HOSTID",
                          "NCCL_CROSS_NIC", "NCCL_COMM_ID", "NCCL_HOME", "NCCL_GIN_ENABLE"}
# The secret of the commands, a constant of NCCL, and misspelled names that are shown as such.
OF_DOCUMENTS |= {"BEELINE_RENDEZVOUS_TOKEN", "NCCL_CTA_POLICY_ZERO", "NCCL_IB_GID", "NCCL_IB_GID_INDEXX"}
# The variables of NCCL's own transport that the plugin names as having no effect.
CONFIG = (ROOT / "plugin" / "config" / "nccl_variables.cc").read_text(encoding="utf-8")
WITHOUT_EFFECT = set(re.findall(r'"(NCCL_\w+)"', re.search(r"kWithoutEffect = \{(.*?)\}", CONFIG, re.DOTALL)[1]))


class CheckedIn(unittest.TestCase):
    def test_names(self):
        self.assertEqual(profiles.names(), ["infiniband", "iwarp", "one-gpu-softnic", "roce-v2", "softnic-host"])

    def test_profiles_name_only_existing_variables(self):
        self.assertIn("BEELINE_CM", OURS)
        self.assertIn("NCCL_IB_HCA", HONORED)
        for name in profiles.names():
            unknown = set(profiles.load(name).environment) - OURS - HONORED - OF_NCCL
            self.assertEqual(unknown, set(), name)

    def test_documents_name_only_existing_variables(self):
        for name in ("README.md", "SECURITY.md", "docs/running-jobs.md", "docs/containers.md",
                     "docs/troubleshooting.md", "docs/compatibility.md", "docs/tuning.md", "docs/faq.md",
                     "docs/reporting-bugs.md", "nccl-tests-config/README.md"):
            text = (ROOT / name).read_text(encoding="utf-8")
            said = set(re.findall(r"\b(?:NCCL|BEELINE)_[A-Z0-9_]*[A-Z0-9]\b", text))
            self.assertTrue(said, name)
            self.assertEqual(said - OURS - HONORED - OF_DOCUMENTS - WITHOUT_EFFECT, set(), name)

    def test_each_setting_has_a_comment(self):
        for name in profiles.names():
            lines = (profiles.FOLDER / f"{name}.conf").read_text(encoding="utf-8").splitlines()
            for above, line in zip([""] + lines, lines):
                if "=" in line and not line.startswith(("#", "title=")):
                    self.assertTrue(above.startswith("# "), f"{name}: {line}")

    def test_beeline_is_wanted_by_name(self):
        for name in profiles.names():
            profile = profiles.load(name)
            if profile.engine == "nccl-tests":
                self.assertEqual(profile.environment["NCCL_NET"], "Beeline", name)
                self.assertIsNotNone(profile.baseline, name)

    def test_a_shell_reads_them_too(self):
        # `set -a; . FILE` gives a job the same environment.
        for name in profiles.names():
            for value in profiles.load(name).environment.values():
                self.assertRegex(value, r"^[\w,.:=/+-]*$", name)


class Bad(unittest.TestCase):
    def refused(self, text, words):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "mine.conf"
            file.write_text(text, encoding="utf-8")
            with self.assertRaisesRegex(Misuse, words):
                profiles.load(str(file))

    def test_lines(self):
        self.refused("# good\n\nengine\n", r'mine.conf:3: "engine" is not NAME=value')
        self.refused("frob=1\n", "no setting frob; there are title, engine")
        self.refused("engine=fast\n", '"fast" is none of nccl-tests, beeline-perf')
        self.refused("ranks=0\n", "no number from 1 on")
        self.refused("seconds=soon\n", "no time in seconds")
        self.refused("fabric=nowhere.toml\n", "there is no nowhere.toml in")
        self.refused("NCCL_NET=A\nNCCL_NET=B\n", "mine.conf:2: NCCL_NET is set twice")

    def test_files(self):
        with self.assertRaisesRegex(Misuse, 'no profile "frob"; there are infiniband, '):
            profiles.load("frob")
        with self.assertRaisesRegex(Misuse, "/nowhere/x.conf: No such file or directory"):
            profiles.load("/nowhere/x.conf")


class Sizes(unittest.TestCase):
    def test_ranges(self):
        self.assertEqual(parse_range("8..8G"), (8, 8 << 30))
        self.assertEqual(range_text((8, 64 << 20)), "8..64M")
        for bad in ("8", "8..", "..8", "8..4", "0..8", "8..8T", "1..2..3", "a..b"):
            with self.assertRaisesRegex(ValueError, "no range of sizes"):
                parse_range(bad)

    def test_how_they_are_shown(self):
        self.assertEqual([size_text(size) for size in (8, 1000, 1024, 1536, 8 << 20, 8 << 30)],
                         ["8 B", "1000 B", "1 KiB", "1.5 KiB", "8 MiB", "8 GiB"])


if __name__ == "__main__":
    unittest.main()
