# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of a controller and two nodes on this machine, for one user and for one test."""

import getpass
import os
import pathlib
import random
import shlex
import socket
import subprocess

from nodes import NODES
from processes import reap_orphans, wait_for

# The nodes claim more processors and GPUs than this machine may have. Device files that every machine has stand
# in for GPUs, which nobody opens. Nothing listens on other interfaces than the loopback.
CONF = """
ClusterName=deploy
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
TaskProlog={folder}/prolog
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=10000,batch_sched_delay=0
SelectType=select/cons_tres
SlurmdParameters=config_overrides
KillWait=2
GresTypes=gpu
{nodes}
PartitionName=all Nodes=ALL Default=YES
"""
NODE = "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=4 Gres=gpu:2\n"
GRES = "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"
# For containers without systemd, with which Slurm would make control groups of version 2. No plugin uses them.
CGROUP = "CgroupPlugin=cgroup/v1\n"
# Slurm passes the environment of the job on. What the prolog prints, here the variables of the node, is added.
PROLOG = "#!/bin/sh\ncase $SLURMD_NODENAME in\n{cases}esac\n"
CASE = "{node}) cat <<'END' ;;\n{lines}\nEND\n"


def free_ports(count):
    """Below those that the kernel gives to connections, so that only a program that asks for a port can take it."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = set()
    while len(found) < count:
        port = random.randrange(min(10000, first // 2), first)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.add(port)
    return sorted(found)


class SlurmCluster:
    def __init__(self, folder, environments):
        """`environments` has the variables of each node, which its tasks get."""
        self.folder = folder
        self.environment = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "SLURM_CONF": str(folder / "slurm.conf")}
        self.daemons = {}
        self.configure(environments)

    def begin(self):
        folder = self.folder
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.start("munged", "--foreground", "--force", "--num-threads=2", *(
            f"--{what}={folder / file}" for what, file in (
                ("socket", "munge.socket"), ("key-file", key.name), ("pid-file", "munge.pid"),
                ("log-file", "munge.log"), ("seed-file", "munge.seed"))))
        self.wait_for((folder / "munge.socket").exists, lambda: "a socket of munged")
        self.start("slurmctld", "-D")
        for node in NODES:
            self.start("slurmd", "-D", "-N", node, name=node)
        self.wait_for(lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(NODES),
                      lambda: f"idle nodes: {self.ask('sinfo', '-N', '-l')}")

    def end(self):
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()

    def configure(self, environments):
        controller_port, *ports = free_ports(1 + len(NODES))
        nodes = "".join(NODE.format(name=node, port=port) for node, port in zip(NODES, ports))
        cases = ""
        for node, variables in environments.items():
            lines = "\n".join(f"export {name}={value}" for name, value in variables.items())
            cases += CASE.format(node=node, lines=lines)
        conf = CONF.format(folder=self.folder, user=getpass.getuser(), controller_port=controller_port, nodes=nodes)
        files = {"slurm.conf": conf, "gres.conf": GRES, "cgroup.conf": CGROUP, "prolog": PROLOG.format(cases=cases)}
        for name, text in files.items():
            (self.folder / name).write_text(text)
        (self.folder / "prolog").chmod(0o755)
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()

    def start(self, program, *options, name=None):
        name = name or program
        with (self.folder / f"{name}.log").open("w") as log:
            self.daemons[name] = subprocess.Popen([program, *options], env=self.environment, cwd=self.folder,
                                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self):
        return "\n".join(f"{name}:\n{(self.folder / f'{name}.log').read_text()[-2000:]}" for name in self.daemons)

    def wait_for(self, is_there, what):
        def check():
            # A step of a job has ended only when nobody has to wait for its processes any more.
            reap_orphans({daemon.pid for daemon in self.daemons.values()})
            for name, daemon in self.daemons.items():
                if daemon.poll() is not None:
                    raise AssertionError(f"{name} has ended: {self.said()}")
            return is_there()

        return wait_for(check, lambda: f"{what()}; {self.said()}")

    def ask(self, *command, **more):
        done = subprocess.run(command, env={**self.environment, **more}, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        return done.stdout

    def run(self, *command, **environment):
        """Submits a job and waits until it has ended. Returns its last state and its output."""
        job = self.ask("sbatch", "--parsable", *map(str, command), **environment).strip()
        if not job.isdigit():
            raise AssertionError(f"{shlex.join(map(str, command))}: {job}")

        def output():
            return "".join(file.read_text() for file in self.folder.glob(f"*-{job}.log"))

        state = self.wait_for(lambda: self.end_of(job), lambda: f"an end of the job, which said: {output()}")
        return state, output()

    def end_of(self, job):
        state = self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()
        return state if state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING") else None
