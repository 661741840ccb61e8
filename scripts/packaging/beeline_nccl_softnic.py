# SPDX-License-Identifier: Apache-2.0
"""softnic, a software RDMA device for tests, and a stand-in for the CUDA driver."""
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def run_softnic():
    program = os.path.join(FOLDER, "lib", "beeline-softnic", "softnic")
    os.execv(program, [program, *sys.argv[1:]])
