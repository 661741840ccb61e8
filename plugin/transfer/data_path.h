// SPDX-License-Identifier: Apache-2.0
//
// State of one queue pair and its completion queue, as the thread that moves data counts it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "plugin/wire/notice.h"

namespace beeline {

struct Device;

struct DataPath {
  ibv_qp* qp = nullptr;
  ibv_cq* cq = nullptr;
  std::uint32_t max_inline = 0;  // bytes
  std::uint32_t most_bytes = 0;  // that one work request carries
  std::uint32_t lkey = 0;        // of the comm's control memory
  std::uint32_t ring_key = 0;    // receiver: of the peer's ring
  std::uint32_t send_free = 0;   // work requests that the send queue still takes
  std::uint8_t index = 0;        // in Connection::paths
  std::uint8_t rail = 0;         // of this end: its index in the keys of this end's memory
  std::uint8_t peer_rail = 0;    // its index in the keys of the peer's memory
  std::uint8_t generation = 0;   // counts how often the path was made anew
  bool is_up = true;             // false: fenced. It is polled, and nothing is posted on it
  bool may_grant = true;         // receiver: credit lines may be written by it
  bool is_reported = false;      // after a fence: what completes now does not count any more
  bool is_lost = false;          // its device is gone, until the path has another
  std::uint8_t markers = 0;      // of the fence that are still to complete
  bool is_read_back = false;     // receiver: the READs of the fence have been posted

  bool is_probing = false;  // receiver: a zero-byte write is under way, to test the path

  std::uint32_t heard = 0;  // polls that have found completions; only if there are several paths
  std::uint32_t to_next_signal = 0;  // receiver: grants up to the next signaled one
  std::uint64_t bytes = 0;  // moved so far, for any thread; only if the comm has several paths
  const Device* first_device = nullptr;  // with which the path was made when the comm was

  // --- The sender's ---
  std::int64_t most_immediate = -1;  // bytes: a longer message needs a notice; -1: every message

  // --- The receiver's ---
  std::uint32_t posted_receives = 0;  // not consumed; counted only if the comm has several paths
  std::uint32_t next_receive = 0;     // place in the receive queue of the next one to post
  wire::Notice* notices = nullptr;    // where notices arrive, by place in the receive queue
};

}  // namespace beeline
