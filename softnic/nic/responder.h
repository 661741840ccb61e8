// SPDX-License-Identifier: Apache-2.0
// What the far end's NIC does with a piece of a message. It runs in the requester's thread and
// works on the target's arena and memory, so the target's own threads have no part in it.
#pragma once

#include <infiniband/verbs.h>

#include "softnic/nic/peer_route.h"
#include "softnic/nic/pieces.h"

namespace softnic {

struct Request {
  ibv_wr_opcode opcode;
  std::uint32_t rkey;
  std::uint64_t remote_addr;
  std::uint64_t length;  // of the whole message
  std::uint64_t offset;  // of this piece in it
  std::uint64_t bytes;   // of this piece
  std::uint32_t imm_data;
  std::uint64_t compare_add;  // of atomics
  std::uint64_t swap;
  std::uint32_t path_mtu;
  std::uint32_t sq_psn;
  std::uint64_t connection;  // who speaks: differs for every connection of every QP
  bool first;                // nothing of this connection was answered yet
  bool corrupt;              // flip a bit of the payload on its way
  bool solicited;            // the sender asks that the receiver be woken
};

struct Answer {
  enum class Verdict {
    kPlaced,
    kNoAnswer,    // nobody answered
    kNotReady,    // RNR: wait `wait_ns` and come again
    kRefused,     // the request failed over there; `status` says what we report
    kLocalFault,  // our own memory could not be read or written
  };
  Verdict verdict = Verdict::kNoAnswer;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::int64_t wait_ns = 0;
};

// The caller is inside (fence.h) and `path` holds.
Answer respond(Runtime& runtime, const PeerRoute& route, std::uint32_t target_qpn,
               const Request& request, const Pieces& ours);

}  // namespace softnic
