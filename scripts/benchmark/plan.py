# SPDX-License-Identifier: Apache-2.0
"""The runs of a benchmark, and the environment of each."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from errors import Misuse


@dataclass
class Run:
    name: str  # as shown
    stem: str  # of its file names
    environment: dict  # of every rank
    plugin: Optional[str] = None  # for beeline-perf; None: Beeline


def plan(profile, options):
    """Beeline first, then the runs with which it is compared."""
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
        raise Misuse(f"profile {profile.name} uses no GPU, so GPUDirect has no effect; omit --gdr-gain")
    return Run("without GPUDirect", "no-gpudirect", {**environment, "NCCL_NET_GDR_LEVEL": "LOC"})


def own_network(profile, environment):
    if profile.baseline is None:
        raise Misuse(f"profile {profile.name} runs without NCCL or names no network of it (baseline=IB); "
                     "compare with another plugin: --plugin-baseline FILE")
    environment = {**environment, "NCCL_NET_PLUGIN": "none", "NCCL_NET": profile.baseline}
    if profile.fabric and profile.baseline == "IB":
        # By default NCCL reads the types of GIDs in the machine's /sys, where softnic's devices do not
        # exist, and gives up. Entry 3 of softnic is a RoCE v2 GID with an IPv4 address.
        environment.setdefault("NCCL_IB_GID_INDEX", "3")
    return Run(f"NCCL's {profile.baseline}", f"nccl-{profile.baseline.lower()}", environment)


def other_plugin(environment, plugin):
    """Another plugin, named by its file or by the X of libnccl-net-X.so."""
    if "/" in plugin:
        plugin = os.path.abspath(plugin)
        if not os.path.exists(plugin):
            raise Misuse(f"--plugin-baseline {plugin}: no such file; name another plugin's library")
    environment = {**environment, "NCCL_NET_PLUGIN": plugin}
    # Only the plugin knows its own name.
    environment.pop("NCCL_NET", None)
    name = Path(plugin).stem.removeprefix("libnccl-net-")
    return Run(name, "other-plugin", environment, plugin)
