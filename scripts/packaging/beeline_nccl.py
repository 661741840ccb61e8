# SPDX-License-Identifier: Apache-2.0
"""Beeline, a network plugin for NCCL. `beeline env` prints what to set so that NCCL uses it."""
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.join(FOLDER, "lib", "libnccl-net-beeline.so")


def run_beeline():
    program = os.path.join(FOLDER, "bin", "beeline")
    os.execv(program, [program, *sys.argv[1:]])


def run_bench():
    script = os.path.join(FOLDER, "share", "beeline", "scripts", "bench")
    os.execv(sys.executable, [sys.executable, script, *sys.argv[1:]])
