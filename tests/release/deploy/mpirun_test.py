#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Open MPI starts the ranks of docs/deploy/mpirun.sh on two nodes.

Usage: mpirun_test.py BEELINE SOFTNIC PLUGIN
The exit status is 77 if Open MPI is not installed."""

import shlex
import subprocess

from nodes import DEPLOY, NODES, RANKS, DeployTest, main, skip_without

# Takes the place of ssh, and runs the command here. As with ssh, it gets nothing of the environment of mpirun.
AGENT = """#!/bin/sh
node=$1
shift
case $node in
{cases}*) echo "agent: no node $node" >&2; exit 1 ;;
esac
"""


class Mpirun(DeployTest):
    def case(self, node):
        # Daemons of Open MPI whose hosts have the same name would share a folder, and each other's files in it.
        scratch = self.folder / node
        scratch.mkdir()
        variables = {**self.nodes.environment(node), "TMPDIR": scratch}
        words = " ".join(shlex.quote(f"{name}={value}") for name, value in variables.items())
        return f'{node}) exec env -i PATH="$PATH" HOME="$HOME" {words} sh -c "$*" ;;\n'

    def test_ranks_on_two_nodes(self):
        cases = "".join(self.case(node) for node in NODES)
        agent = self.script("agent", AGENT.format(cases=cases))
        hosts = self.folder / "hosts"
        hosts.write_text("".join(f"{node} slots={RANKS // len(NODES)}\n" for node in NODES))
        done = subprocess.run(
            [DEPLOY / "mpirun.sh", "--allow-run-as-root", "--oversubscribe", "--mca", "plm_rsh_agent", agent,
             "-np", str(RANKS), "--hostfile", hosts, self.program],
            cwd=self.folder, env=self.user_environment(TMPDIR=str(self.folder)), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.check_job(done.stdout)


if __name__ == "__main__":
    skip_without(["mpirun"], "openmpi-bin")
    main()
