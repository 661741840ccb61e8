#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster with two nodes runs the job scripts in docs/deploy.

Usage: slurm_test.py BEELINE SOFTNIC PLUGIN
The exit status is 77 if Slurm is not installed, or if this host's name has no address."""

import socket
import sys

from nodes import DEPLOY, NODES, SKIPPED, STAND_IN, DeployTest, main, skip_without
from slurm_cluster import SlurmCluster


class Slurm(DeployTest):
    def setUp(self):
        super().setUp()
        self.cluster = SlurmCluster(self.folder, {node: self.nodes.environment(node) for node in NODES})
        self.addCleanup(self.cluster.end)
        self.cluster.begin()

    def run_job(self, script, *options, **environment):
        variables = self.user_environment(**environment)
        state, output = self.cluster.run(*options, DEPLOY / script, self.program, **variables)
        self.assertEqual(state, "COMPLETED", output + self.cluster.said())
        self.check_job(output)

    def test_jobs_on_two_nodes(self):
        with self.subTest("srun starts the ranks"):
            self.run_job("slurm-job.sh", "--ntasks-per-node=2", "--gpus-per-node=2")
        (self.folder / "meeting").unlink(missing_ok=True)
        with self.subTest("torchrun starts the ranks"):
            path = f"{STAND_IN}:{self.cluster.environment['PATH']}"
            self.run_job("slurm-torchrun-job.sh", "--gpus-per-node=2", PATH=path)


if __name__ == "__main__":
    skip_without(["slurmctld", "slurmd", "sbatch", "munged"], "slurm-wlm and munge")
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError as error:  # slurmd listens at that address only
        print(f"skipped: the name of this host, {socket.gethostname()}, has no address: {error}. "
              "To fix it: add it to a line of /etc/hosts")
        sys.exit(SKIPPED)
    main()
