// SPDX-License-Identifier: Apache-2.0
//
// One path of a comm: a pair of rails, the queue pair that serves it now, and all that its end
// knows of it. A comm with one path contains it. Those of a comm with several paths are in
// Connection::extra.
//
// Threads: the one that has the comm (comm_gate.h). Any thread may read `bytes`, and also `rail`
// and `first_device`, which do not change.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "plugin/connect/comm/path_resources.h"
#include "plugin/device/device.h"
#include "plugin/repair/path_machine.h"
#include "plugin/transfer/path_repair.h"
#include "plugin/transfer/path_signs.h"
#include "plugin/wire/notice.h"

namespace beeline {

struct Path {
  // The device that serves the path unless it is out of use: that by which it was made at first, or
  // what that is since it came back.
  const Device& own_device() const noexcept { return first_device->newest(); }
  // Whether another device has taken its place.
  bool is_stand_in() const noexcept { return resources->device->index != own_device().index; }

  // The engine (plugin/repair) decides on the state. Only this function says what a state means for
  // posts, grants and completions.
  void set_state(PathState next) noexcept {
    if (next == state) return;
    state = next;
    posts = next == PathState::kUp || next == PathState::kAnswered;
    grants = next == PathState::kUp;
    counts = posts || next == PathState::kFencing;
    fence_left = 0;
    is_read_back = false;
  }

  // --- What each message needs, first ---
  ibv_qp* qp = nullptr;
  ibv_cq* cq = nullptr;
  std::uint32_t max_inline = 0;  // bytes
  std::uint32_t most_bytes = 0;  // that one work request carries
  std::uint32_t lkey = 0;        // of the comm's control memory
  std::uint32_t window_key = 0;  // of the peer's memory; 0: this end may not write there
  std::uint32_t send_free = 0;   // work requests that the send queue still takes
  std::uint8_t index = 0;        // in Comm::paths(), and in messages about the path
  std::uint8_t rail = 0;         // of this end: its index in the keys of this end's memory
  std::uint8_t peer_rail = 0;    // its index in the keys of the peer's memory
  std::uint8_t generation = 0;   // the lowest 8 bits of how often the path was made anew
  // Only set_state() changes the next three.
  bool posts = true;   // false: it is polled, and nothing is posted on it
  bool grants = true;  // receiver: credit lines may be written by it
  bool counts = true;  // false: this end has reported, and what completes now counts no more
  bool is_device_left = false;  // its device is gone and nothing waits for it any more
  // Completions of the fence that are still to come. kNoMarks: nothing was posted for them, because
  // the queue pair is not in ERROR.
  static constexpr std::uint8_t kNoMarks = UINT8_MAX;
  std::uint8_t fence_left = 0;
  bool is_read_back = false;  // receiver: the READs of the fence have been posted
  bool is_probing = false;    // a zero-byte write is under way, to test the path. The sender of a
                              // comm with several paths does not look at it
  PathState state = PathState::kUp;
  std::uint32_t heard = 0;  // polls that have found completions; only if there are several paths
  std::uint32_t to_next_signal = 0;  // receiver: grants up to the next signaled one
  std::uint64_t bytes = 0;  // moved so far, for any thread; only if the comm has several paths
  // Sender, in bytes: a longer message needs a notice; -1: every message.
  std::int64_t most_immediate = -1;
  std::uint32_t posted_receives = 0;  // not consumed; counted only if the comm has several paths
  std::uint32_t next_receive = 0;     // place in the receive queue of the next one to post
  wire::Notice* notices = nullptr;    // where notices arrive, by place in the receive queue

  // --- The rest ---
  const Device* first_device = nullptr;  // with which the path was made when the comm was
  PathResources* resources = nullptr;    // in use now; the connection holds them
  // When all that it had brought is visible to a GPU. Only while it does not count.
  std::int64_t visible_ns = 0;
  // The device for which the buffers have the keys of the rail. It is the same in all paths of the
  // rail: that of the path which joined last. Null: all of them have been missing so far.
  const Device* rail_device = nullptr;
  std::unique_ptr<PathSilence> silence;  // null until a comm with several paths waits
  std::unique_ptr<PathRepair> repair;    // null until a path of the comm fails
};

}  // namespace beeline
