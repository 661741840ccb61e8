#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A Slurm job over Beeline, whose ranks srun starts. The program and its arguments come after the script:
#   sbatch slurm-job.sh python3 train.py
# Options of sbatch before the script replace those here. PLUGIN_DIR is the folder of libnccl-net-beeline.so
# on all nodes.
#SBATCH --job-name=beeline
#SBATCH --output=%x-%j.log
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8

# srun passes the whole environment on.
export LD_LIBRARY_PATH=${PLUGIN_DIR:-/opt/beeline/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline NCCL_NET_PLUGIN_REF_COUNT=1 NCCL_DEBUG=INFO

srun "$@"
