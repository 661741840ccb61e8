#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts the ranks of one node over Beeline. Run it on each node, with the arguments of torchrun:
#   torchrun.sh --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_id=job1 \
#     --rdzv_endpoint=node0:29500 train.py
# PLUGIN_DIR is the folder of libnccl-net-beeline.so.

# Each rank inherits the environment of its torchrun.
export LD_LIBRARY_PATH=${PLUGIN_DIR:-/opt/beeline/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline NCCL_NET_PLUGIN_REF_COUNT=1 NCCL_DEBUG=INFO

exec torchrun "$@"
