// SPDX-License-Identifier: Apache-2.0
// The work of the remote NIC for a piece of a message. It runs in the requester's thread, on the
// target's arena and memory; the target's own threads are not involved.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

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
  std::uint64_t connection;  // differs for every connection of every QP
  bool first;                // no request of this connection was answered yet
  bool corrupt;              // flip a bit of the payload
  bool discard;              // acknowledge it, and place nothing
  bool solicited;            // IBV_SEND_SOLICITED
};

struct Answer {
  enum class Verdict {
    kPlaced,
    kNoAnswer,
    kNotReady,    // RNR NAK: retry after `wait_ns`
    kRefused,     // the peer refused it; `status` is for the completion
    kLocalFault,  // the local memory could not be read or written
  };
  Verdict verdict = Verdict::kNoAnswer;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::int64_t wait_ns = 0;
};

// The caller holds a BusyGuard (fence.h), and `route.is_connected_to()` is true.
Answer respond(Runtime& runtime, const PeerRoute& route, std::uint32_t target_qpn,
               const Request& request, const Pieces& ours);

}  // namespace softnic
