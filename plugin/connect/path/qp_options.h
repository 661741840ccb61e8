// SPDX-License-Identifier: Apache-2.0
//
// How queue pairs are set up: what the person who runs the job may turn. -1 is "no wish".
#pragma once

#include <cstdint>

#include "plugin/connect/comm/comm_settings.h"
#include "plugin/device/gid_choice.h"

namespace beeline {

struct QpOptions {
  std::uint8_t timeout = 20;  // of one transmission: 4.096 us * 2^timeout
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;       // 7 is forever
  std::uint8_t min_rnr_timer = 12;  // 0.64 ms
  int service_level = -1;
  int traffic_class = -1;
  int pkey_index = -1;
  GidPolicy gid;             // RoCE
  GidPolicy ib_gid;          // InfiniBand
  bool cm_wished = false;    // set up through librdmacm, also where there is another way
  bool ece = true;           // enhanced connection establishment, where both devices have it
  int thread_domains = 128;  // at most so many on a device, whose connections it need not lock
};

// What the person who runs the job has set goes before what a communicator wishes.
inline QpOptions options_for(const CommSettings& settings, QpOptions options) {
  const bool possible = settings.traffic_class >= 0 && settings.traffic_class <= UINT8_MAX;
  if (options.traffic_class < 0 && possible) options.traffic_class = settings.traffic_class;
  return options;
}

}  // namespace beeline
