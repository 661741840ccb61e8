# SPDX-License-Identifier: Apache-2.0
"""Two nodes, node1 and node2, which are hosts of one softnic fabric, for tests of docs/deploy.

A test that imports this is started as TEST BEELINE SOFTNIC PLUGIN."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from processes import adopt_orphans, end_children

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parents[2] / "docs" / "deploy"
STAND_IN = HERE / "stand_in"  # for torchrun
NODES = ("node1", "node2")
RANKS = 4
FABRIC = """
[[host]]
name = "node[1-2]"
numa_nodes = 1
[[host.device]]
name = "softnic0"
gbps = 100
"""
# It knows the plugin only from the variables of the script under test.
PROGRAM = """#!/bin/sh
echo "NCCL_NET=$NCCL_NET NCCL_NET_PLUGIN_REF_COUNT=$NCCL_NET_PLUGIN_REF_COUNT on $SOFTNIC_HOST"
exec {beeline} perf allreduce --plugin "${{NCCL_NET_PLUGIN:?}}" --rendezvous {folder}/meeting \\
  --sizes 8,64K,1M --iters 20 --timeout 30
"""
SKIPPED = 77


def skip_without(programs, packages):
    """Ends the test if programs are not installed."""
    path = f"{os.environ['PATH']}:/usr/sbin"  # which other users than root may lack
    missing = [program for program in programs if not shutil.which(program, path=path)]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed (Debian has it in {packages})")
        sys.exit(SKIPPED)


class Nodes:
    """The fabric, until `end`. It also ends with this process."""

    def __init__(self, folder):
        fabric = folder / "fabric.toml"
        fabric.write_text(FABRIC)
        self.name = f"deploy-{os.getpid()}"
        self.keeper = subprocess.Popen(
            [SOFTNIC, "run", "--name", self.name, "--fabric", fabric, "--", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.keeper.stdout.readline() != b"ready\n":
            raise AssertionError(f"softnic ended with {self.keeper.wait()}")

    def end(self):
        # The last that uses the fabric removes its files, which it cannot do if it is killed.
        end_children(spared=self.keeper.pid)
        self.keeper.communicate()

    def environment(self, node):
        """The variables that make a process run on this node, and that have nothing to do with the job."""
        said = subprocess.run([SOFTNIC, "run", "--name", self.name, "--host", node, "--", "env", "-0"],
                              env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, check=True, text=True).stdout
        variables = dict(line.split("=", 1) for line in said.split("\0") if line)
        # The job sets LD_LIBRARY_PATH, and another variable names the library of softnic.
        return {name: value for name, value in variables.items() if name not in ("PATH", "LD_LIBRARY_PATH")}


class DeployTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.nodes = Nodes(self.folder)
        self.addCleanup(self.nodes.end)
        self.program = self.script("program", PROGRAM.format(beeline=BEELINE, folder=self.folder))

    def script(self, name, text):
        file = self.folder / name
        file.write_text(text)
        file.chmod(0o755)
        return file

    def user_environment(self, **more):
        """What the user who starts the job has set. The rest of this process' environment is not the job's."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PLUGIN_DIR": os.path.dirname(PLUGIN), **more}

    def check_job(self, output):
        """All ranks have added up right over Beeline, two of them on each node."""
        self.assertIn("# Wrong elements : 0 OK\n", output)
        self.assertNotIn(" is no parameter of this version", output)  # said of variables that begin with BEELINE_
        self.assertRegex(output, r"(?m)^# plugin Beeline \(v\d+\), libnccl-net-beeline.so$")
        ranks = re.findall(r"(?m)^#  Rank +(\d) Pid +\d+ on +(\S+) devices beeline_softnic0$", output)
        self.assertEqual([rank for rank, _ in ranks], [str(rank) for rank in range(RANKS)], output)
        for node in NODES:
            self.assertEqual([host for _, host in ranks].count(node), RANKS / len(NODES), output)
            variables = f"NCCL_NET=Beeline NCCL_NET_PLUGIN_REF_COUNT=1 on {node}\n"
            self.assertEqual(output.count(variables), RANKS / len(NODES), output)
        # Lines of NCCL_DEBUG=INFO.
        users = set(re.findall(r"rank (\d): NET INFO NET/Beeline : using \[0\]softnic0:1/RoCE", output))
        self.assertEqual(len(users), RANKS, output)


def main():
    del sys.argv[1:4]
    adopt_orphans()
    unittest.main(module="__main__", failfast=True)  # so that an end by SIGTERM ends all tests


# Meson names them relative to the folder in which it runs tests.
BEELINE, SOFTNIC, PLUGIN = map(os.path.abspath, sys.argv[1:4])
