#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/deploy/torchrun.sh starts the ranks of two nodes, with a stand-in for torchrun.

Usage: torchrun_test.py BEELINE SOFTNIC PLUGIN"""

import os
import subprocess

from nodes import DEPLOY, NODES, RANKS, STAND_IN, DeployTest, main


class Torchrun(DeployTest):
    def test_ranks_on_two_nodes(self):
        variables = self.user_environment(PATH=f"{STAND_IN}:{os.environ['PATH']}")
        with (self.folder / "log").open("w+") as log:
            starters = [
                subprocess.Popen(
                    [DEPLOY / "torchrun.sh", f"--nnodes={len(NODES)}", f"--nproc_per_node={RANKS // len(NODES)}",
                     "--rdzv_backend=c10d", "--rdzv_id=job1", "--rdzv_endpoint=node1:29500", self.program],
                    env={**variables, **self.nodes.environment(node)}, stdout=log, stderr=log)
                for node in NODES]
            status = [starter.wait(timeout=100) for starter in starters]
            log.seek(0)
            output = log.read()
        self.assertEqual(status, [0, 0], output)
        self.check_job(output)


if __name__ == "__main__":
    main()
