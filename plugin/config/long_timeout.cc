// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/long_timeout.h"

namespace beeline {
namespace {

// From this value on, a device takes 34 s or more to report a dead path.
constexpr int kLongTimeout = 20;

}  // namespace

std::optional<LongTimeout> long_timeout(const Config& config, const Environ& environ) {
  if (!config.recovery || config.timeout < kLongTimeout) return std::nullopt;
  // By the formula of docs/faults.md.
  const std::int64_t least_ns = (std::int64_t{4096} << config.timeout) * (config.retry_cnt + 1);
  if (config.stall_timeout_ns != 0 && config.stall_timeout_ns <= least_ns) return std::nullopt;
  for (const char* const variable : {"BEELINE_TIMEOUT", "NCCL_IB_TIMEOUT"}) {
    if (environ.get(variable)) return LongTimeout{.variable = variable, .least_ns = least_ns};
  }
  return std::nullopt;
}

}  // namespace beeline
