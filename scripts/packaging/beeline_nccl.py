# SPDX-License-Identifier: Apache-2.0
"""Beeline, a network plugin for NCCL. `beeline env` prints what to set so that NCCL uses it."""
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.join(FOLDER, "lib", "libnccl-net-beeline.so")


def _become(*path):
    program = os.path.join(FOLDER, *path)
    os.execv(program, [program, *sys.argv[1:]])


def run_beeline():
    _become("bin", "beeline")


def run_softnic():
    _become("lib", "beeline-softnic", "softnic")
