#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rxe.sh BEELINE PLUGIN all|short: tests the plugin on the kernel's soft RoCE, over two rails.
set -u -o pipefail
guest=$(dirname "${BASH_SOURCE[0]}")/../guest
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/perf.sh"

patient_devices
rails=(--comms 2 --dev 'rxe_a1,rxe_b1/rxe_a2,rxe_b2') # a comm on each rail; even ranks at one end

two_rails() {
  load_rxe && plug_in 1 && plug_in 2 && rdma_device rxe a1 b1 a2 b2 && rdma link
}

# Each rank sees one device of its own, as on two hosts.
one_device_each() {
  perf stream --sizes 64K --seconds 0.2 --env 0:NCCL_IB_HCA==rxe_a1 --env 1:NCCL_IB_HCA==rxe_b1 &&
    [[ $(grep -cE 'Rank +[01] .*devices beeline_rxe_[ab]1$' /run/perf) == 2 ]]
}

# Both ends of both cables as one device. Cable 1 is four times as fast as cable 2, and their ports claim
# the same speed. Equal parts would use 40 % of the sum of both, and the faster cable alone 80 %.
merged_rails() {
  local rates=(40 10) rail card
  for rail in 1 2; do
    for card in "a$rail" "b$rail"; do
      tc qdisc add dev "$card" root tbf rate "${rates[rail - 1]}mbit" burst 128k limit 8m || return
    done
  done
  perf stream --abi v12 --rails 2 --sizes 1M --seconds 8 --comms 1 \
    --env 0:NCCL_IB_HCA==rxe_a1,rxe_a2 --env 1:NCCL_IB_HCA==rxe_b1,rxe_b2 >/run/merged
  local status=$?
  grep -v '^= ' /run/merged
  for card in a1 b1 a2 b2; do tc qdisc del dev "$card" root; done
  ((status == 0)) || return
  awk '$1 == "#" && $2 == "Avg" { share = $6 * 1e9 * 8 / 50e6 * 100 }
       END { printf "= %.0f %% of both cables together\n", share; exit !(share >= 85) }' /run/perf
}

# A network that spreads flows by their UDP ports can send the queue pairs of one rail different ways.
queue_pairs_have_ports() {
  local capture status
  python3 "$guest/udp_ports.py" a1 4 30 >/run/ports &
  capture=$!
  until_true 30 grep -q ready /run/ports || return
  perf stream --sizes 1M --seconds 0.5 --dev rxe_a1,rxe_b1 \
    --env NCCL_IB_QPS_PER_CONNECTION=4 --env NCCL_IB_SPLIT_DATA_ON_QPS=1 >/run/spread
  status=$?
  wait "$capture"
  sed -n '2s/^/= ports /p' /run/ports
  ((status == 0)) && [[ $(sed -n 2p /run/ports | wc -w) == 4 ]]
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
check "two rails of unequal speed as one device" merged_rails
check "one of two rails goes down and comes back" rail_returns rxe
check "four queue pairs of a rail send from four UDP ports" queue_pairs_have_ports
all_patterns "${rails[@]}"
check "64 connections" connections 64 --dev rxe_a1,rxe_b1
end_of_suite
