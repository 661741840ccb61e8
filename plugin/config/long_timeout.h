// SPDX-License-Identifier: Apache-2.0
//
// A timeout with which a device reports a dead path late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/config/config.h"

namespace beeline {

struct LongTimeout {
  std::string variable;       // that sets it: "NCCL_IB_TIMEOUT"
  std::int64_t least_ns = 0;  // until the device reports; it may take up to four times as long
};
// Empty if the timeout is not long, or if nothing waits for it.
std::optional<LongTimeout> long_timeout(const Config& config, const Environ& environ);

}  // namespace beeline
