// SPDX-License-Identifier: Apache-2.0
//
// Chooses the MTU, the partition, the service level and the traffic class of a connection. The
// accepting side calls these pure functions with the data of both ends, and sends the result to the
// connecting side. GIDs are chosen in gid_choice.h.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/problem.h"

namespace beeline {

// The smaller one. kProtocol if a value is not an MTU code, since the remote one is from the peer.
Result<ibv_mtu> agree_mtu(ibv_mtu local, std::uint8_t remote_code);

// The entries of a port's table that may be used. -1: any.
struct PkeyChoice {
  int index = -1;
  int value = -1;  // at any index; wins over `index`. The highest bit, full membership, is ignored
};
struct PkeySide {
  std::span<const std::uint16_t> table;  // by index; 0: empty entry
  PkeyChoice choice = {};
  std::string_view who = {};  // for the error: "h0 mlx5_0 port 1"
};
struct PkeyPair {
  std::uint16_t local_index = 0;
  std::uint16_t remote_index = 0;
};
// The first partition (by the local index, then by the remote one) of which both ends are members,
// at least one of them a full member: two limited members cannot communicate.
Outcome<PkeyPair> agree_pkey(const PkeySide& local, const PkeySide& remote);

// The index for the peer, which compares indexes only: that of the key with the value, as a full
// member if the table has it twice; without a value, the index that is set. A problem if the port
// has no such key.
Outcome<int> fixed_pkey_index(const PkeySide& port);

// The index for a connection of a port with itself: the first usable entry that is a full
// membership, since a limited member cannot communicate with itself.
Outcome<std::uint16_t> choose_own_pkey(const PkeySide& port);

std::string key_text(int key);  // "0x8001"

// A service level or a traffic class. Each side has a preference, or -1.
struct AgreedValue {
  int value = 0;
  bool acceptor_overruled = false;  // both had a preference, and they differed
};
// The connecting side's preference wins, since it sends the payload; then the accepting side's;
// then 0.
AgreedValue agree_value(int connector_value, int acceptor_value) noexcept;

}  // namespace beeline
