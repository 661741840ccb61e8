#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rxe.sh BEELINE PLUGIN all|short: tests the plugin on the kernel's soft RoCE, over two rails.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/perf.sh"

rails=(--comms 2 --dev 'rxe_a1,rxe_b1/rxe_a2,rxe_b2') # a comm on each rail; even ranks at one end

two_rails() {
  load_rxe && plug_in 1 && plug_in 2 && rdma_device rxe a1 b1 a2 b2 && rdma link
}

# Each rank sees one device of its own, as on two hosts.
one_device_each() {
  perf stream --sizes 64K --seconds 0.2 --env 0:NCCL_IB_HCA==rxe_a1 --env 1:NCCL_IB_HCA==rxe_b1 &&
    [[ $(grep -cE 'Rank +[01] .*devices beeline_rxe_[ab]1$' /run/perf) == 2 ]]
}

note "Linux $(uname -r)"
check "two cables with rxe at both ends" two_rails || end_of_suite
if [[ $3 == short ]]; then
  check "allreduce v12, 4 ranks" perf allreduce --ranks 4 --sizes 0,7,64K,1M --iters 1 "${rails[@]}"
  check "soak" perf soak --seconds 1 "${rails[@]}"
  end_of_suite
fi
all_reduces 0,1,8,4K,65537,4M "${rails[@]}"
check "the data went over both cables" both_rails_used
check "NCCL_IB_HCA chooses a device" one_device_each
all_patterns "${rails[@]}"
check "64 connections" connections 64 --dev rxe_a1,rxe_b1
end_of_suite
