#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A Slurm job over Beeline, in which each node has one torchrun that starts the ranks, one for each GPU:
#   sbatch slurm-torchrun-job.sh train.py
# Options of sbatch before the script replace those here. PLUGIN_DIR is the folder of libnccl-net-beeline.so
# on all nodes. RDZV_PORT is the port of the first node at which they meet; jobs that share a node need
# different ones.
#SBATCH --job-name=beeline
#SBATCH --output=%x-%j.log
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8

# srun and torchrun pass the whole environment on.
export LD_LIBRARY_PATH=${PLUGIN_DIR:-/opt/beeline/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline NCCL_NET_PLUGIN_REF_COUNT=1 NCCL_DEBUG=INFO

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc_per_node="$SLURM_GPUS_ON_NODE" \
  --rdzv_backend=c10d --rdzv_id="$SLURM_JOB_ID" --rdzv_endpoint="$first:${RDZV_PORT:-29500}" "$@"
