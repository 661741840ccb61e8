# shellcheck shell=bash disable=SC2034  # for those who source it
# SPDX-License-Identifier: Apache-2.0
#
# The PCI tree of the kernel: a device's path below /sys/devices is its place in the tree. It is read
# once, since processes are slow to start here.

# The PCI devices, in the order of their addresses.
addresses=()
# For each address; empty where there is none. A root bus has the name of its folder, and a switch the
# address of its upstream port:
# /sys/devices/ROOT_BUS/ROOT_PORT/UPSTREAM_PORT/DOWNSTREAM_PORT/DEVICE.
declare -A path_of root_bus_of switch_of class_of identity_of node_of interface_of

read_functions() {
  local path address vendor device steps interfaces
  while read -r path; do
    address=${path##*/}
    addresses+=("$address")
    path_of[$address]=$path
    read -r class_of["$address"] <"$path/class" && read -r node_of["$address"] <"$path/numa_node" &&
      read -r vendor <"$path/vendor" && read -r device <"$path/device" || return
    identity_of[$address]=$vendor:$device
    IFS=/ read -r -a steps <<<"${path#/sys/devices/}"
    root_bus_of[$address]=${steps[0]} switch_of[$address]=''
    ((${#steps[@]} != 5)) || switch_of[$address]=${steps[2]}
    interfaces=("$path"/virtio*/net/*) # of a virtio card
    interface_of[$address]=${interfaces[0]##*/}
  done < <(realpath /sys/bus/pci/devices/*)
  ((${#addresses[@]} > 0))
}

display=0x0380 ethernet=0x0200 drive=0x0108

devices() { # CLASS NODE : addresses
  local address
  for address in "${addresses[@]}"; do
    [[ ${class_of[$address]} != "$1"* || ${node_of[$address]} != "$2" ]] || echo "$address"
  done
}

# The devices that QEMU uses as bridges.
declare -A bridges=(
  [0x1b36:0x000c]='root port'
  [0x104c:0x8232]='upstream port'
  [0x104c:0x8233]='downstream port'
)
ports() { # KIND NODE : addresses
  local address
  for address in "${addresses[@]}"; do
    [[ ${bridges[${identity_of[$address]}]-} != "$1" || ${node_of[$address]} != "$2" ]] ||
      echo "$address"
  done
}
