// SPDX-License-Identifier: Apache-2.0
//
// What the two ends of a connection agree on besides GIDs. Pure functions, called by the accepting
// side with both ends' facts; the result goes back to the connecting side.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/problem.h"

namespace beeline {

// The smaller. kProtocol when a value is no MTU code: the remote one came over the wire.
Result<ibv_mtu> agree_mtu(ibv_mtu local, std::uint8_t remote_code);

struct PkeySide {
  std::span<const std::uint16_t> table;  // by index; 0 is an empty place
  int fixed_index = -1;                  // >= 0: this entry and no other
  std::string_view who = {};             // for the error: "h0 mlx5_0 port 1"
};
struct PkeyPair {
  std::uint16_t local_index = 0;
  std::uint16_t remote_index = 0;
  std::uint16_t partition = 0;  // the 15 bits both share
};
// The first partition (by the local index, then the remote) which both are in, at least one of them
// as a full member: two limited members may not talk. The error is a text for people.
Outcome<PkeyPair> agree_pkey(const PkeySide& local, const PkeySide& remote);

// The index by which a port reaches itself: the first entry that may be used and is a full
// membership, since a limited member may not talk to itself. The error is a text for people.
Outcome<std::uint16_t> choose_own_pkey(const PkeySide& port);

// Service level or traffic class: each side has a wish or -1.
struct AgreedValue {
  int value = 0;
  bool acceptor_overruled = false;  // both had a wish, and they differed
};
// The connecting side's wish wins, since it sends the payload; else the accepting side's; else 0.
AgreedValue agree_value(int connector_wish, int acceptor_wish) noexcept;

}  // namespace beeline
