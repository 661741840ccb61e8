// SPDX-License-Identifier: Apache-2.0
//
// Devices that consist of several NICs: made by the plugin at NCCL's request (makeVDevice), or by
// the plugin itself (BEELINE_RAILS).
#pragma once

#include <string>
#include <vector>

#include "tests/plugin/contract/flow.h"

namespace beeline::test {

// The numbers of the devices to merge into one.
using Group = std::vector<int>;

// The versions with makeVDevice.
std::vector<Abi> abis_with_vdevices();

// Merges the groups with the calls that NCCL makes from init on, in NCCL's order
// (ncclTopoMakeVNics), and checks the answers. Returns the devices that makeVDevice has made, in
// the order of the groups.
std::vector<int> merge_as_nccl(const Session& session, const std::vector<Group>& groups);

// The same with the calls of NCCL 2.24 to 2.26: they also ask for a device of each NIC that is in
// no group, and then use only what makeVDevice has made. Returns these devices by their first NIC.
std::vector<int> merge_as_nccl_2_24(const Session& session, std::vector<Group> groups);

// Merges one group of `count` devices, from the first on; with one, it is the first device.
int merged_device(const Session& session, int count);

// Sends messages of many sizes through one connection, and compares every byte. Each end chooses
// its device right before it connects, and calls `before` before its session begins.
using ChooseDevice = std::function<int(Peer& peer, const Session& session)>;
void must_carry_messages(
    const Way& way, const ChooseDevice& sender, const ChooseDevice& receiver,
    const PeerBody& before = [](Peer&) {});

}  // namespace beeline::test
