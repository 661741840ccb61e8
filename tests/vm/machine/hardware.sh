# shellcheck shell=bash disable=SC2154  # the options of scripts/vm, which sources this
# SPDX-License-Identifier: Apache-2.0
#
# QEMU options for the hardware that the options of scripts/vm request.

# add_hardware: appends to `machine` the hardware of the options numa, nics and wires.
add_hardware() {
  local i
  machine+=(-machine q35)
  [[ -z $numa ]] || add_nodes
  for ((i = 0; i < nics; ++i)); do
    add_card "$i" $((i / 2)) pcie.0
  done
  for i in "${!wires[@]}"; do
    add_wire "$i" "${wires[i]}"
  done
}

# add_card NUMBER HUB BUS: a network card on a hub. Two cards on one hub form a cable. Without a bus,
# QEMU uses the last one, which with --numa accepts no card. host_mtu is the largest MTU that the guest
# may set; RDMA packets of 4096 bytes must fit.
add_card() {
  machine+=(-netdev "hubport,id=card$1,hubid=$2"
    -device "virtio-net-pci,netdev=card$1,mac=$(mac 0 "$1"),host_mtu=9000,bus=$3")
}

# add_wire NUMBER MINE,PEER: a card that is connected to a card of another machine by two sockets. Either
# machine may start first.
add_wire() {
  local mine=${2%,*} peer=${2#*,} side=1
  [[ $mine < $peer ]] || side=2 # the two ends must not have the same address
  machine+=(
    -netdev "dgram,id=wire$1,local.type=unix,local.path=$mine,remote.type=unix,remote.path=$peer"
    -device "virtio-net-pci,netdev=wire$1,mac=$(mac "$side" "$1"),host_mtu=9000,bus=pcie.0")
}

mac() { printf '52:54:00:00:%02x:%02x' "$1" "$2"; }

# Each of two nodes has its own host bridge, and below it
#   a root port, a switch, and behind its four ports two displays (for GPUs) and two network cards;
#   a root port with a network card of its own.
# Node 1 also has an NVMe drive. A cable connects the two cards behind each switch, and another one the
# two cards that are not behind a switch.
add_nodes() {
  local node port where chassis half=$((${memory%[GM]} / 2)) unit=${memory: -1}
  ((half > 0)) || stop "scripts/vm: --numa wants a --memory of at least 2 G or M, in whole numbers"
  for node in 0 1; do
    chassis=$((10 * node))
    machine+=(-object "memory-backend-ram,id=memory$node,size=$half$unit"
      -numa "node,nodeid=$node,memdev=memory$node,cpus=$(cpus_of "$node")"
      -device "pxb-pcie,id=bridge$node,bus=pcie.0,bus_nr=$((32 + 64 * node)),numa_node=$node"
      -device "pcie-root-port,id=root$node,bus=bridge$node,chassis=$((chassis + 1)),slot=1"
      -device "x3130-upstream,id=switch$node,bus=root$node")
    for port in 0 1 2 3; do
      where=bus=switch$node,slot=$port,chassis=$((chassis + 2 + port))
      machine+=(-device "xio3130-downstream,id=port$node$port,$where")
    done
    machine+=(-device "bochs-display,bus=port${node}0,vgamem=16M"
      -device "bochs-display,bus=port${node}1,vgamem=16M")
    for port in 2 3; do
      add_card $((16 + 4 * node + port)) $((16 + node)) "port$node$port"
    done
    where=bus=bridge$node,slot=2,chassis=$((chassis + 8))
    machine+=(-device "pcie-root-port,id=direct$node,$where")
    add_card $((32 + node)) 32 "direct$node"
  done
  machine+=(-numa 'dist,src=0,dst=1,val=21'
    -device 'pcie-root-port,id=drive,bus=bridge1,chassis=19,slot=3'
    -blockdev 'driver=null-co,node-name=nothing,size=67108864,read-zeroes=on'
    -device 'nvme,bus=drive,serial=1,drive=nothing')
}

cpus_of() { echo "$(($1 * cpus / 2))-$((($1 + 1) * cpus / 2 - 1))"; } # NODE
