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

# The link goes down while no data is under way, because the receiver is stopped and grants nothing more.
# Both ends make the path anew.
idle_link_returns() {
  local job receiver status=0
  sent_before=$(bytes_sent a1)
  perf stream --abi v12 --sizes 64K --seconds 20 --comms 1 --env BEELINE_STANDBY=0 \
    --env 0:NCCL_IB_HCA==siw_a1 --env 1:NCCL_IB_HCA==siw_b1 &
  job=$!
  until_true 60 has_sent a1 1000000 || status=1
  receiver=$(sed -nE 's/^# +Rank +1 Pid +([0-9]+) .*/\1/p' /run/perf)
  kill -STOP "$receiver" && until_true 20 is_quiet a1 || status=1
  ip link set b1 down && sleep 1 && bring_up b1 && kill -CONT "$receiver" || status=1
  until_true 30 grep -q 'uses it again, after' /run/perf || status=1
  wait "$job" && return "$status"
}
# Nothing was sent for half a second.
is_quiet() { # CARD
  local before
  before=$(bytes_sent "$1") && sleep 0.5 && [[ $(bytes_sent "$1") == "$before" ]]
}

need_siw
note "Linux $(uname -r)"
check "two cables with siw at both ends" two_rails || end_of_suite
all_reduces 0,1,8,4K,65537,4M "${rails[@]}"
check "the data went over both cables" both_rails_used
all_patterns "${rails[@]}"
check "64 connections" connections 64 --dev siw_a1,siw_b1
check "the link goes down while no data is under way, and comes back" idle_link_returns
check "RoCE at one end of a cable, iWARP at the other" mixed_cable &&
  check "connecting them is refused, and the message says why" refused 'RoCE.*iWARP|iWARP.*RoCE' \
    perf stream --sizes 8 --iters 1 --dev rxe_a3,siw_b3
end_of_suite
