#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts a job over Beeline with Open MPI. The arguments are those of mpirun:
#   mpirun.sh -np 16 --hostfile hosts python3 train.py
# PLUGIN_DIR is the folder of libnccl-net-beeline.so on all nodes.

# mpirun passes only the variables that -x names to other nodes.
export LD_LIBRARY_PATH=${PLUGIN_DIR:-/opt/beeline/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec mpirun -x LD_LIBRARY_PATH -x NCCL_NET_PLUGIN=beeline -x NCCL_NET=Beeline \
  -x NCCL_NET_PLUGIN_REF_COUNT=1 -x NCCL_DEBUG=INFO "$@"
