# SPDX-License-Identifier: Apache-2.0
"""Describes this machine, so that results can be compared later."""

import os
import platform
import subprocess
from pathlib import Path


def describe():
    return {
        "host": platform.node(),
        "kernel": f"{platform.system()} {platform.release()}",
        "processor": processor(),
        "processors": os.cpu_count(),
        "gpus": gpus(),
        "rdma_devices": rdma_devices(),
    }


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def gpus():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return said.splitlines()


def rdma_devices():
    folder = Path("/sys/class/infiniband")
    return sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
