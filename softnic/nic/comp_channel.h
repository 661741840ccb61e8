// SPDX-License-Identifier: Apache-2.0
// A completion channel: a descriptor that becomes readable when an armed completion queue gets a
// completion. The process that adds the completion writes the event.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "common/base/fd.h"
#include "softnic/nic/context.h"

namespace softnic {

// Channels are event pipes with a device index that no device has, so they get no port events.
inline constexpr std::uint32_t kChannelDevice = kMaxDevices;

struct CompChannel : ibv_comp_channel {
  // Returns null and sets errno on failure.
  static CompChannel* create(Context& the_owner);
  ~CompChannel();
  CompChannel(const CompChannel&) = delete;
  CompChannel& operator=(const CompChannel&) = delete;
  static CompChannel& of(ibv_comp_channel* channel) noexcept {
    return *static_cast<CompChannel*>(channel);
  }

  // Waits for an event. Returns 0 and the queue of the event, or -1 with errno set.
  int next_event(ibv_cq** cq, void** cq_context);
  // Removes unread events of a queue that is being destroyed. Otherwise poll(2) would report an
  // event to the program, and the program would hang when it reads it.
  void forget(std::uint64_t serial);

  Context& owner;
  const EventPipe pipe;
  const beeline::UniqueFd events;

 private:
  CompChannel(Context& the_owner, EventPipe the_pipe, beeline::UniqueFd the_events) noexcept;
};

}  // namespace softnic
