#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# siw.sh BEELINE PLUGIN: tests the plugin on the kernel's soft iWARP, over two rails. iWARP connects only
# through the connection manager, and has no writes with immediate data.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/perf.sh"

rails=(--comms 2 --dev 'siw_a1,siw_b1/siw_a2,siw_b2') # a comm on each rail; even ranks at one end

two_rails() {
  load_siw && plug_in 1 9000 && plug_in 2 9000 && rdma_device siw a1 b1 a2 b2 && rdma link
}

# A third cable, RoCE at one end and iWARP at the other.
mixed_cable() {
  load_rxe && plug_in 3 && rdma_device rxe a3 && rdma_device siw b3
}

need_siw
note "Linux $(uname -r)"
check "two cables with siw at both ends" two_rails || end_of_suite
all_reduces 0,1,8,4K,65537,4M "${rails[@]}"
check "the data went over both cables" both_rails_used
all_patterns "${rails[@]}"
check "64 connections" connections 64 --dev siw_a1,siw_b1
check "RoCE at one end of a cable, iWARP at the other" mixed_cable &&
  check "connecting them is refused, and the message says why" refused 'RoCE.*iWARP|iWARP.*RoCE' \
    perf stream --sizes 8 --iters 1 --dev rxe_a3,siw_b3
end_of_suite
