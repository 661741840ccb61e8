// SPDX-License-Identifier: Apache-2.0
//
// Turns SIGTERM and SIGINT into a descriptor that can be read, so that a loop ends between two
// steps and not within one.
#pragma once

#include <cstdint>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace beeline::exporter {

// Lifecycle: from its creation on, the two signals no longer end the process. Threads: one.
class StopSignals {
 public:
  static Result<StopSignals> catch_them();

  int fd() const noexcept { return fd_.get(); }
  // Waits until that time. Returns whether a signal has come.
  bool come_until(std::int64_t end_ns) const noexcept;

 private:
  explicit StopSignals(UniqueFd fd) noexcept : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace beeline::exporter
