# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Creates cables and RDMA devices inside the emulated machine.
#
# Up to Linux 6.12, rxe receives only in the first network namespace, so both ends of every cable are
# there. Linux would send packets between two addresses of one machine over lo, which has no RDMA
# device. Policy routing sends them over the cable instead.

# plug_in RAIL [MTU]: creates a cable from aRAIL (10.RAIL.0.1) to bRAIL (10.RAIL.0.2).
plug_in() {
  local rail=$1 mtu=${2-4200} # room for RDMA packets of 4096 bytes
  ip link add "a$rail" mtu "$mtu" type veth peer name "b$rail" mtu "$mtu" &&
    lay_cable "a$rail" "10.$rail.0.1" "b$rail" "10.$rail.0.2"
}

# lay_cable CARD ADDRESS CARD ADDRESS: configures two cards that are connected already, as by
# scripts/vm --nics. Programs are slow to start here, so each call does as much as possible.
lay_cable() {
  ip -batch - <<END || return
addr add $2/24 dev $1
addr add $4/24 dev $3
link set $1 up
link set $3 up
END
  until_true 30 carrier "$1" && until_true 30 carrier "$3" || return
  route_over_cables
  accept_own "$1" && accept_own "$3" || return
  { send_over "$1" "$2" "$4" && send_over "$3" "$4" "$2"; } | ip -batch -
}

carrier() { # CARD
  local state
  read -r state <"/sys/class/net/$1/carrier" && [[ $state == 1 ]]
}

# Makes the kernel look up local addresses last instead of first.
route_over_cables() {
  ip rule | grep '^100:' >/dev/null && return # not -q, which may end ip by a signal
  ip rule add pref 100 lookup local && ip rule del pref 0 lookup local
  sysctl -qw net.ipv4.conf.all.{rp_filter=0,arp_ignore=1,arp_announce=2}
}

# Accepts packets from the cable although their sender is an address of this machine.
accept_own() { # CARD
  echo 0 >"/proc/sys/net/ipv4/conf/$1/rp_filter" && echo 1 >"/proc/sys/net/ipv4/conf/$1/accept_local"
}

# Prints commands for ip: incoming packets are delivered locally, and packets to the other end leave by
# this card ("iif lo" matches packets that this machine sends).
send_over() { # CARD FROM TO
  local index table
  read -r index <"/sys/class/net/$1/ifindex" || return
  table=$((1000 + index))
  echo "rule add pref 10 iif $1 lookup local"
  echo "route add $3/32 dev $1 src $2 table $table"
  echo "rule add pref 20 iif lo to $3/32 lookup $table"
}

# bring_up CARD: of plug_in, after it was down; with the route that the kernel has removed.
bring_up() {
  local ours=1 theirs=2
  [[ $1 == a* ]] || { ours=2 theirs=1; }
  ip link set "$1" up && ip route replace "10.${1#?}.0.$theirs/32" dev "$1" src "10.${1#?}.0.$ours" \
    table $((1000 + $(<"/sys/class/net/$1/ifindex")))
}

# The machine is emulated, and acknowledgments may take longer than the 67 ms after which a device sends
# again by default. rxe of Linux 6.1 answers some of what it gets twice with status 9, which ends the
# connection.
patient_devices() { export NCCL_IB_TIMEOUT=18; }

load_rxe() { modprobe rdma_rxe && modprobe rdma_ucm; }

# Debian does not build siw. scripts/vm --siw builds it next to the other modules.
load_siw() {
  modprobe -a ib_core iw_cm libcrc32c rdma_ucm && insmod /run/kernel/siw.ko
}

need_rxe() { :; }
# A suite without it is skipped.
need_siw() {
  [[ -e /run/kernel/siw.ko ]] || { echo 'no kernel module of soft iWARP: scripts/vm --siw --prepare'; exit 77; }
}

# rdma_device KIND CARD...: creates an rxe or siw device over each card, with the name KIND_CARD.
rdma_device() {
  local kind=$1 card
  shift
  for card in "$@"; do
    rdma link add "${kind}_$card" type "$kind" netdev "$card" &&
      until_true 30 active "${kind}_$card" || return
  done
}

active() { # DEVICE
  local state
  read -r state <"/sys/class/infiniband/$1/ports/1/state" && [[ $state == *ACTIVE* ]]
}

# gid_index DEVICE: the index of its IPv4 address in the GID table.
gid_index() {
  local gid
  for gid in "/sys/class/infiniband/$1/ports/1/gids/"*; do
    case $(cat "$gid" 2>/dev/null) in
      0000:0000:0000:0000:0000:ffff:*) basename "$gid"; return ;;
    esac
  done
  return 1
}

bytes_sent() { cat "/sys/class/net/$1/statistics/tx_bytes"; } # CARD
