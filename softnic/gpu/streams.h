// SPDX-License-Identifier: Apache-2.0
// Streams and events. The work of a stream is done at once, or in order if streams share queues.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "softnic/gpu/driver.h"

namespace softnic::gpu {

struct Stream {
  int gpu = 0;
  Queue* queue = nullptr;
  // Number of the latest work in the queue. Mutable, because calls pass const streams.
  mutable std::uint64_t latest = 0;
};

struct GpuEvent {
  bool has_timing = true;
  bool is_recorded = false;
  std::chrono::steady_clock::time_point recorded_at;  // when the call was made
  Ticket ticket;
};

// Whether it is a default stream or one that the program created.
bool is_stream(const Driver& driver, const Stream* stream);

// Returns the position after all work of a known stream.
Ticket end_of(const Driver& driver, const Stream* stream);

// Does the work after all earlier work of the stream, or at once if there are no queues.
void in_turn(const Driver& driver, const Stream* stream, std::function<void()> work);

}  // namespace softnic::gpu
