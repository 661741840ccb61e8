# SPDX-License-Identifier: Apache-2.0
"""Which runs a benchmark consists of, and the environment of each."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from errors import Misuse


@dataclass
class Run:
    name: str  # for people
    stem: str  # of its files
    environment: dict  # of every rank
    plugin: Optional[str] = None  # for beeline-perf: None is ours


def plan(profile, options):
    """Beeline first, then what it is compared with."""
    environment = {**profile.environment, **dict(options.env)}
    runs = [Run("Beeline", "beeline", environment)]
    if options.gdr_gain:
        runs.append(without_gpudirect(profile, environment))
    if options.baseline:
        runs.append(own_network(profile, environment))
    if options.plugin_baseline:
        runs.append(other_plugin(environment, options.plugin_baseline))
    return runs


def without_gpudirect(profile, environment):
    if profile.engine != "nccl-tests":
        raise Misuse(f"profile {profile.name} uses no GPU, so GPUDirect brings nothing; leave --gdr-gain out")
    return Run("without GPUDirect", "no-gpudirect", {**environment, "NCCL_NET_GDR_LEVEL": "LOC"})


def own_network(profile, environment):
    if profile.baseline is None:
        raise Misuse(f"profile {profile.name} runs without NCCL or names no network of it (baseline=IB); "
                     "compare with another plugin: --plugin-baseline FILE")
    environment = {**environment, "NCCL_NET_PLUGIN": "none", "NCCL_NET": profile.baseline}
    if profile.fabric and profile.baseline == "IB":
        # Left to choose, it reads the kinds of GIDs in the machine's /sys, where softnic's devices
        # are not, and gives up. Entry 3 is softnic's RoCE v2 one with an IPv4 address.
        environment.setdefault("NCCL_IB_GID_INDEX", "3")
    return Run(f"NCCL's {profile.baseline}", f"nccl-{profile.baseline.lower()}", environment)


def other_plugin(environment, plugin):
    """By its file, or by the X of libnccl-net-X.so."""
    if "/" in plugin:
        plugin = os.path.abspath(plugin)
        if not os.path.exists(plugin):
            raise Misuse(f"--plugin-baseline {plugin}: no such file; name another plugin's library")
    environment = {**environment, "NCCL_NET_PLUGIN": plugin}
    # It has a name of its own, which only it knows.
    environment.pop("NCCL_NET", None)
    name = Path(plugin).stem.removeprefix("libnccl-net-")
    return Run(name, "other-plugin", environment, plugin)
