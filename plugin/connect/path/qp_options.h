// SPDX-License-Identifier: Apache-2.0
//
// Settings of queue pairs. Where -1 is allowed, it means that the user has set nothing.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>

#include "plugin/connect/comm/comm_settings.h"
#include "plugin/device/agree.h"
#include "plugin/device/gid_choice.h"
#include "plugin/device/rail_devices.h"
#include "plugin/wire/handle.h"
#include "plugin/wire/limits.h"

namespace beeline {

struct QpOptions {
  std::uint8_t timeout = 20;  // of one transmission: 4.096 us * 2^timeout
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;       // 7 is forever
  std::uint8_t min_rnr_timer = 12;  // 0.64 ms
  int service_level = -1;
  int traffic_class = -1;
  PkeyChoice pkey;
  GidPolicy gid;              // RoCE
  GidPolicy ib_gid;           // InfiniBand
  bool cm_requested = false;  // librdmacm sets up the queue pair even if it is not needed for that
  bool ece = true;            // enhanced connection establishment, if both devices have it
  int thread_domains = 128;   // at most so many on one device
  int qps_per_rail = 1;       // queue pairs on each rail of a comm: 1 to wire::kMaxPaths
};

// The peer writes credits, data or messages, and nothing else.
inline constexpr unsigned kQpAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

// A setting of the user takes precedence over the communicator's.
inline QpOptions options_for(const CommSettings& settings, QpOptions options) {
  const bool possible = settings.traffic_class >= 0 && settings.traffic_class <= UINT8_MAX;
  if (options.traffic_class < 0 && possible) options.traffic_class = settings.traffic_class;
  return options;
}

// An end sends this to the other end, so that both compute the same paths.
inline wire::RailCounts rail_counts(RailDevices devices, const QpOptions& options) {
  const int most = wire::kMaxPaths;
  return {.rails = static_cast<std::uint8_t>(devices.size()),
          .qps_per_rail = static_cast<std::uint8_t>(std::clamp(options.qps_per_rail, 1, most))};
}

}  // namespace beeline
