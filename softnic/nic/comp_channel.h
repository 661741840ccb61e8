// SPDX-License-Identifier: Apache-2.0
// A completion channel: a descriptor that becomes readable when an armed completion queue gets a
// completion. Whoever pushes the completion writes the event, from whatever process.
#pragma once

#include <infiniband/verbs.h>

#include "common/base/fd.h"
#include "softnic/nic/context.h"

namespace softnic {

// Channels are pipes of no device, so that port events pass them by.
inline constexpr std::uint32_t kChannelDevice = kMaxDevices;

struct CompChannel : ibv_comp_channel {
  // Null with errno set.
  static CompChannel* create(Context& the_owner);
  ~CompChannel();
  CompChannel(const CompChannel&) = delete;
  CompChannel& operator=(const CompChannel&) = delete;
  static CompChannel& of(ibv_comp_channel* channel) noexcept {
    return *static_cast<CompChannel*>(channel);
  }

  // The next event: 0 with the queue it is about, or -1 with errno set.
  int next_event(ibv_cq** cq, void** cq_context);
  // Takes out what nobody has read of a queue that is going away: a program that was told by
  // poll(2) that there is an event must not hang in reading it.
  void forget(std::uint64_t serial);

  Context& owner;
  const EventPipe pipe;
  const beeline::UniqueFd events;

 private:
  CompChannel(Context& the_owner, EventPipe the_pipe, beeline::UniqueFd the_events) noexcept;
};

}  // namespace softnic
