#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# host.sh BEELINE PLUGIN NUMBER: runs in one of the two machines of two_hosts.sh. Its rank has the number
# of the machine.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/perf.sh"

me=$3 port=7000 # no other program uses ports in this machine
export NCCL_SOCKET_IFNAME=eth0

two_cards() {
  local rail card
  modprobe virtio_net && load_rxe || return
  hostname "host$me"
  for rail in 1 2; do
    card=eth$((rail - 1))
    ip addr add "10.$rail.0.$((me + 1))/24" dev "$card" && ip link set "$card" mtu 4200 up &&
      until_true 60 carrier "$card" || return
  done
  rdma_device rxe eth0 eth1 && rdma link
}

# The other machine may still be booting.
peer_answers() { until_true 240 busybox ping -c 1 -W 1 "10.1.0.$((2 - me))"; }

# together PATTERN OPTION...: runs this machine's rank. Only rank 0 has the result and prints it. Each run
# uses another port, since the kernel takes a while to release the last one.
together() {
  local run=(perf)
  port=$((port + 1))
  ((me == 0)) || run=(beeline_perf)
  "${run[@]}" "$@" --ranks 2 --rank "$me" --rendezvous "10.1.0.1:$port" --dev rxe_eth0/rxe_eth1
}

check "two rails" two_cards || end_of_suite
check "the other machine answers" peer_answers || end_of_suite
check "allreduce v8" together allreduce --abi v8 --comms 2 --sizes 0,7,64K,4M --iters 1
check "allreduce v12" together allreduce --comms 2 --sizes 0,7,64K,4M --iters 1
check "latency" together latency --sizes 8 --seconds 1
check "stream" together stream --comms 2 --sizes 64K,1M --seconds 1
check "connect" together connect --comms 16
check "soak" together soak --comms 2 --seconds 3 --seed 1
end_of_suite
