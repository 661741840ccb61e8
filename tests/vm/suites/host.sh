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
export NCCL_SOCKET_IFNAME=eth0 BEELINE_RENDEZVOUS_TOKEN=known-to-both-machines

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

# doctor_finds FINDING...: the doctors of both machines look at them and at what is between them. Rank 0 has
# the result, which must be these findings and no other, as ID:SUBJECT.
doctor_finds() {
  port=$((port + 1))
  RANK=$me WORLD_SIZE=2 timeout --kill-after=5 200 "$beeline" doctor --cluster "10.1.0.1:$port" --json \
    --seconds 0.1 >/run/doctor.json
  ((me > 0)) && return
  python3 - "$@" <<'END'
import json, sys
report = json.load(open("/run/doctor.json"))
found = sorted(f"{f['id']}:{f['subject']}" for f in report["findings"] if f["severity"] != "unknown")
print("=", *found)
for pair in report["pairs"]:
    print("=", pair["a"], pair["b"], pair["failure"] or f"{pair['gbytes_per_s']:.3f} GB/s")
sys.exit(found != sorted(sys.argv[1:]))
END
}
# Only in machine 1. The other one waits for it when they meet.
in_other() { ((me == 0)) || "$@"; }
slow_card() { tc qdisc replace dev eth1 root netem rate 20mbit limit 10000; }
silent_card() { tc qdisc replace dev eth1 root netem loss 100%; }
usual_card() { tc qdisc del dev eth1 root; }
no_address() { ip addr flush dev eth1 scope global; }

# Eight rails, each of which reaches all eight of the other machine: the cards of rail R have the network
# 10.R.0.0/16 and share the wire of eth1.
eight_cards() {
  local rail card
  modprobe macvlan && ip addr flush dev eth1 && rdma link delete rxe_eth0 && rdma link delete rxe_eth1 || return
  sysctl -qw net.ipv4.conf.{all,default}.{rp_filter=0,arp_ignore=1,arp_announce=2} || return
  for rail in {11..18}; do
    card="r$rail"
    ip -batch - <<END && rdma_device rxe "$card" || return
link add $card link eth1 mtu 4200 type macvlan mode bridge
addr add 10.$rail.0.$((me + 1))/16 dev $card
link set $card up
route add 10.0.0.0/8 dev $card table $rail
rule add pref 50 from 10.$rail.0.$((me + 1)) lookup $rail
END
  done
}
three_faults() {
  if ((me == 0)); then
    ip neigh replace 10.15.0.2 lladdr 02:00:00:00:00:01 dev r12 nud permanent # no card has this address
  else
    tc qdisc replace dev r16 root netem rate 20mbit limit 10000 && ip addr flush dev r14 scope global
  fi
}

check "two rails" two_cards || end_of_suite
check "the other machine answers" peer_answers || end_of_suite
check "allreduce v8" together allreduce --abi v8 --comms 2 --sizes 0,7,64K,4M --iters 1
check "allreduce v12" together allreduce --comms 2 --sizes 0,7,64K,4M --iters 1
check "latency" together latency --sizes 8 --seconds 1
check "stream" together stream --comms 2 --sizes 64K,1M --seconds 1
check "connect" together connect --comms 16
check "soak" together soak --comms 2 --seconds 3 --seed 1
rail="rxe_eth1"
check "doctor: the wires are networks of their own" doctor_finds rails-apart:
check "doctor: a card of host1 is slowed down" in_other slow_card
check "  it is named" doctor_finds rails-apart: "pair-slow:host0 $rail and host1 $rail"
check "doctor: the card sends nothing" in_other silent_card
check "  it is named" doctor_finds "rail-unreachable:host0 $rail" "rail-unreachable:host1 $rail"
check "doctor: the card sends again" in_other usual_card
check "doctor: the card loses its address" in_other no_address
check "  it is named" doctor_finds rails-apart: "gid-only-link-local:host1 $rail port 1"
check "doctor: eight rails in one network" eight_cards
check "  nothing is wrong" doctor_finds
check "doctor: a slow rail, a stale neighbour, a rail without an address" three_faults
check "  each is named, and nothing else" doctor_finds "rail-slow:host1 rxe_r16" \
  "pair-unreachable:host0 rxe_r12 and host1 rxe_r15" "gid-only-link-local:host1 rxe_r14 port 1"
end_of_suite
