# SPDX-License-Identifier: Apache-2.0
"""Two simulated hosts whose ports all claim the same speed while softnic shapes each one differently,
and `beeline perf` between them."""

import json
import os
import subprocess

CLAIMED_GBPS = 100
MEGABYTE = 1_000_000
HOSTS = ("h0", "h1")


def fabric_text(rates):
    """A fabric file. `rates` are MB/s; rail i of a host reaches only rail i of the other."""
    parts = []
    for host in HOSTS:
        parts.append(f'[[host]]\nname = "{host}"\n')
        for i, rate in enumerate(rates):
            parts.append(f'[[host.device]]\nname = "softnic{i}"\ngbps = {CLAIMED_GBPS}\n'
                         f'rate = "{rate}M"\nnetwork = "rail{i}"\n')
    return "\n".join(parts)


def port_of(rail):
    """The sender's port of a rail, as softnic names it."""
    return f"{HOSTS[0]}/softnic{rail}:1"


class Failed(Exception):
    """A program ended with an error, or data was wrong."""


class TestBed:
    """Runs programs of one build folder; files go to `folder`."""

    def __init__(self, build, folder):
        build = os.path.abspath(build)
        self.softnic = os.path.join(build, "softnic/softnic")
        self._beeline = os.path.join(build, "tools/beeline")
        self._plugin = os.path.join(build, "plugin/abi/libnccl-net-beeline.so")
        self._folder = folder
        self._runs = 0
        for program in (self.softnic, self._beeline, self._plugin):
            if not os.path.exists(program):
                raise Failed(f"{program} is missing: build it with `ninja -C {build}`")

    def stream(self, rates, size, depth, how_long):
        """Starts a stream of messages over all rails. `how_long` are options of beeline perf."""
        self._runs += 1
        name = f"rails-{os.getpid()}-{self._runs}"
        fabric = self.path(f"{name}.toml")
        with open(fabric, "w", encoding="utf-8") as file:
            file.write(fabric_text(rates))
        return Stream(self, name, [
            self.softnic, "run", "--name", name, "--fabric", fabric, "--log", self.path(f"{name}.log"),
            "--", self._beeline, "perf", "stream", "--plugin", self._plugin, "--abi", "8",
            "--env", f"BEELINE_RAILS={len(rates)}", "--hosts", ",".join(HOSTS), "--sizes", str(size),
            "--depth", str(depth), "--check-every", *how_long, "--json", self.path(f"{name}.json")])

    def path(self, name):
        return os.path.join(self._folder, name)


class Stream:
    """One run of beeline perf, in a fabric of its own."""

    def __init__(self, bed, name, command):
        self.name = name
        self._bed = bed
        # softnic run waits for its command, so the pipe cannot stay open without a reader.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def finish(self):
        """Waits for the end. Returns the rate in MB/s; an error or a wrong byte raises Failed."""
        output, _ = self.process.communicate()
        if self.process.returncode != 0:
            raise Failed(f"beeline perf ended with status {self.process.returncode}:\n{output[-2000:]}")
        with open(self._bed.path(f"{self.name}.json"), encoding="utf-8") as file:
            result = json.load(file)
        if result["wrong"] != 0:
            raise Failed(f"wrong data in {result['wrong']} elements")
        return result["rows"][0]["algbw"] * 1000

    def log(self):
        """[(seconds since the fabric was created, port, text)]. Valid after finish()."""
        with open(self._bed.path(f"{self.name}.log"), encoding="utf-8") as file:
            rows = [line.split(None, 2) for line in file]
        return [(float(row[0]), row[1], row[2].strip()) for row in rows if len(row) == 3]
