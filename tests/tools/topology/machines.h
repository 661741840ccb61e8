// SPDX-License-Identifier: Apache-2.0
//
// Common kinds of machines, as texts for read_machine(). Their shapes come from published
// descriptions; addresses and names are invented.
#pragma once

#include <string>

namespace beeline::topology::machines {

// 8 GPUs and 8 NICs, one of each below each switch; four switches a NUMA node.
std::string one_nic_each();
// The same, with the NICs' RDMA names counted down.
std::string one_nic_each_reversed();
// 8 GPUs and 8 NICs on 4 NUMA nodes: two of each below a switch.
std::string tied_in_pairs();
// 8 GPUs and 4 NICs: two GPUs and a NIC below two switches in a row.
std::string two_gpus_a_nic();
// 8 GPUs on two NUMA nodes, one NIC on the first.
std::string one_nic_for_all();
// 8 GPUs, each with 4 NICs below its switch.
std::string four_nics_each();
// 16 GPUs and 8 NICs, two GPUs and a NIC below a switch.
std::string sixteen_gpus();
// 4 GPUs and 2 NICs below the switches of a single root port.
std::string one_root_port();
// 4 GPUs on NUMA node 0, 2 NICs on NUMA node 1.
std::string far_socket();
// 2 GPUs and 2 adapters of 2 ports each, all on the root buses of one NUMA node.
std::string dual_port();
// 2 GPUs and 2 NICs on one root bus, the first NIC with two virtual functions.
std::string virtual_functions();
// 2 GPUs; an adapter of two ports in a bond, and a single NIC.
std::string bonded();
// A virtual machine: 4 GPUs and 4 NICs on one root bus, no NUMA node.
std::string flat_virtual_machine();
// Two NUMA nodes, whose firmware does not report the NUMA nodes of devices. 2 GPUs and 2
// NICs; the first of each below a switch.
std::string missing_numa();
// 2 GPUs and 2 NICs, whose links have a rate and no lanes.
std::string no_link_width();
// Two NUMA nodes without a device.
std::string no_io();

}  // namespace beeline::topology::machines
