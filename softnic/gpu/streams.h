// SPDX-License-Identifier: Apache-2.0
// Streams and events. There is never anything in a stream: it is done when it is queued.
#pragma once

#include <chrono>

#include "softnic/gpu/driver.h"

namespace softnic::gpu {

struct Stream {
  int gpu = 0;
};

struct GpuEvent {
  bool has_timing = true;
  bool is_recorded = false;
  std::chrono::steady_clock::time_point recorded_at;
};

// The default streams, and those that the program made.
bool is_stream(const Driver& driver, const Stream* stream);

}  // namespace softnic::gpu
