#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For TaskProlog= in slurm.conf: what it prints as `export` becomes the environment of each task.
# The plugin is "beeline" if the deb or the rpm is installed, and otherwise its file.
echo export NCCL_NET_PLUGIN=/opt/beeline/lib/libnccl-net-beeline.so
echo export NCCL_NET=Beeline
echo export NCCL_NET_PLUGIN_REF_COUNT=1
