// SPDX-License-Identifier: Apache-2.0
//
// Remembers which rails were left out of registrations, so that the log reports each of them once
// for each kind of memory and error, and not for each of many buffers.
//
// Lifecycle: one in a process, since all its connections use the same devices. Threads: any.
#pragma once

#include <mutex>
#include <set>
#include <tuple>

#include "common/base/result.h"
#include "plugin/device/device.h"

namespace beeline {

class LeftOutRails {
 public:
  // True: this device has not refused this kind of memory with this error before.
  bool is_new(const Device& device, bool is_host_memory, const Error& error) {
    const std::lock_guard lock(mutex_);
    return known_.emplace(device.index, is_host_memory, error.code, error.sys_errno).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::tuple<int, bool, Errc, int>> known_;
};

}  // namespace beeline
