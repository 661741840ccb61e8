#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# numa.sh: the machine of `scripts/vm --numa` is what hardware.sh says: two nodes, each with a
# switch.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"

display=0x0380 ethernet=0x0200 drive=0x0108

# devices CLASS NODE : the PCI devices of a class on a node, as paths below /sys/devices.
devices() {
  local device
  for device in /sys/bus/pci/devices/*; do
    [[ $(cat "$device/class") == "$1"* && $(cat "$device/numa_node") == "$2" ]] || continue
    realpath "$device"
  done
  return 0
}

# count_of NUMBER CLASS NODE
count_of() {
  devices "$2" "$3"
  (($(devices "$2" "$3" | wc -l) == $1))
}

# A root port, the switch's two ends, the device: /sys/devices/pciD:B/B/B/B/B
behind_switch() { sed -nE 's|^(/sys/devices/[^/]+/[^/]+/[^/]+)/[^/]+/[^/]+$|\1|p'; }

# Two displays and two cards of a node have a switch in common; the third card has not.
one_switch() { # NODE
  local node=$1 switches
  switches=$({ devices "$display" "$node" && devices "$ethernet" "$node"; } |
    behind_switch | sort | uniq -c)
  echo "$switches"
  [[ $switches =~ ^\ *4\ /sys/devices/pci[^/]+/[^/]+/[^/]+$ ]] && echo "= ${switches##*/}"
}

cards_of_node() { # NODE : a network interface knows its PCI device, and that its node
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

modprobe virtio_net
check "two NUMA nodes" nodes
check "the distance between them" distance
for node in 0 1; do
  check "node $node: two displays" count_of 2 $display "$node"
  check "node $node: three network cards" count_of 3 $ethernet "$node"
  check "node $node: displays and two cards behind one switch" one_switch "$node"
  check "node $node: its network interfaces" cards_of_node "$node"
done
check "node 1: a drive" count_of 1 $drive 1
if command -v lstopo-no-graphics >/dev/null; then
  check "hwloc sees the same" lstopo_shows && cat /run/lstopo
else
  skip "hwloc sees the same" "lstopo is not installed (Debian: hwloc-nox)"
fi
end_of_suite
