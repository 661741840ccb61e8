#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# numa.sh BEELINE: checks that the machine of `scripts/vm --numa` has the hardware of hardware.sh, two
# nodes with a switch each, and that `beeline topo` reports it.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/pci.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/topo.sh"

beeline=$1

# --- The machine ------------------------------------------------------------------------------------

# count_of NUMBER LIST KIND NODE: succeeds if LIST (`devices` or `ports`) finds this number of them.
count_of() {
  "${@:2}"
  (($("${@:2}" | wc -l) == $1))
}

# Two displays and two cards of a node are behind one switch; the third card is not.
one_switch() { # NODE
  local address switches
  switches=$(for address in $(devices "$display" "$1") $(devices "$ethernet" "$1"); do
    [[ -z ${switch_of[$address]} ]] || echo "${switch_of[$address]}"
  done | sort | uniq -c)
  echo "$switches"
  [[ $switches =~ ^\ *4\ ([^ ]+)$ ]] && echo "= ${BASH_REMATCH[1]}"
}

cards_of_node() { # NODE: the network interfaces whose PCI device is on this node
  local card found=()
  for card in /sys/class/net/*/device; do
    # A virtio card's `device` is one step below the PCI device.
    [[ $(cat "$(realpath "$card")/../numa_node" 2>/dev/null) != "$1" ]] ||
      found+=("$(basename "$(dirname "$card")")")
  done
  echo "= ${found[*]}"
  ((${#found[@]} == 3))
}

nodes() { [[ $(cat /sys/devices/system/node/online) == 0-1 ]]; }
distance() { [[ $(cat /sys/devices/system/node/node0/distance) == "10 21" ]]; }
lstopo_shows() {
  lstopo-no-graphics --whole-io >/run/lstopo || return
  cat /run/lstopo
  (($(grep -c 'NUMANode' /run/lstopo) == 2 && $(grep -c '(Display)' /run/lstopo) == 4)) &&
    (($(grep -c '(Ethernet)' /run/lstopo) == 6))
}

the_machine() {
  local node
  check "two NUMA nodes" nodes
  check "the distance between them" distance
  for node in 0 1; do
    check "node $node: two displays" count_of 2 devices $display $node
    check "node $node: three network cards" count_of 3 devices $ethernet $node
    check "node $node: a switch" count_of 1 ports 'upstream port' $node
    check "node $node: its ports" count_of 4 ports 'downstream port' $node
    check "node $node: root ports" count_of $((2 + node)) ports 'root port' $node
    check "node $node: displays and two cards behind one switch" one_switch $node
    check "node $node: its network interfaces" cards_of_node $node
  done
  check "node 1: a drive" count_of 1 devices $drive 1
  if command -v lstopo-no-graphics >/dev/null; then
    check "hwloc sees the same" lstopo_shows && cat /run/lstopo
  else
    skip "hwloc sees the same" "$no_lstopo"
  fi
}
no_lstopo='lstopo is not installed (Debian: hwloc-nox)'

# --- The output of `beeline topo` -------------------------------------------------------------------

# Checks that are possible with an XML file of hwloc, which has no soft RDMA devices.
without_rdma() {
  check "topo: the graph is drawn" draw || return
  check "topo: without an RDMA driver it says so" grep -q 'RDMA devices cannot be seen' /run/topo.json
  check "topo: the PCI tree is the kernel's" says tree kernel_tree
  check "topo: without hwloc the same" same_graph '' topo --json --from /sys
  if command -v lstopo-no-graphics >/dev/null; then
    check "topo: by hwloc" by_hwloc
    check "topo: from lstopo's file the same" same_graph "$not_in_xml" from_xml
    check "topo: from lstopo's file of everything the same" \
      same_graph "$not_in_xml" from_xml --whole-io
  else
    skip "topo: from lstopo's file the same" "$no_lstopo"
  fi
}
by_hwloc() { ! grep 'read without hwloc' /run/topo.json; }

with_rdma() {
  check "rxe on all cards" rxe_on_all_cards && check "topo: the graph is drawn" draw || return
  check "topo: the PCI tree is the kernel's" says tree kernel_tree
  check "topo: the distances" says distances kernel_distances
  check "topo: the same distances in the matrix" matrix_says && cat /run/topo.txt
  check "topo: which GPU uses which NIC" says assigned kernel_assignment && sed 's/^/      /' /run/view
  check "topo: without hwloc the same" same_graph '' topo --json --from /sys
  check "topo: from its file for NCCL the same distances" nccl_xml_says
}
rxe_on_all_cards() {
  local card
  load_rxe || return
  for card in "${cards[@]}"; do
    ip link set "${interface_of[$card]}" up && rdma_device rxe "${interface_of[$card]}" || return
  done
  rdma link
}

by_ordinary_users() {
  check "topo: an ordinary user sees the same" same_graph '' topo_as_nobody
  check "topo: no PCI in /sys" unseen /sys/bus/pci/devices 'PCI devices cannot be seen'
  check "topo: no NUMA nodes in /sys" unseen /sys/devices/system/node 'NUMA nodes cannot be seen'
  check "topo: no RDMA in /sys" no_rdma
}
no_rdma() {
  without /sys/class/infiniband "${nobody[@]}" "$beeline" topo --gpu "${displays[0]}" >/run/topo.txt
  local status=$?
  cat /run/topo.txt
  ((status == 0)) && grep -m 1 'no RDMA NIC for any GPU' /run/topo.txt | sed 's/^ */= /'
}

modprobe virtio_net
check "PCI devices can be read" read_functions || end_of_suite
the_machine
check "the displays and cards are found" find_devices || end_of_suite
without_rdma
with_rdma
by_ordinary_users
end_of_suite
