// SPDX-License-Identifier: Apache-2.0
//
// The limit on locked memory. Registering memory pins its pages, and fails with "Cannot allocate
// memory" if the limit is low. These functions raise the limit if that is allowed, and explain the
// error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/finding.h"
#include "common/base/result.h"

namespace beeline {

inline constexpr std::uint64_t kNoLimit = UINT64_MAX;

struct MemlockFacts {
  std::uint64_t soft_bytes = kNoLimit;
  std::uint64_t hard_bytes = kNoLimit;
  std::uint64_t locked_bytes = 0;  // VmLck; 0 if not known
  std::uint64_t pinned_bytes = 0;  // VmPin: pinned by RDMA
  bool can_exceed = false;         // CAP_IPC_LOCK: the limit does not apply
};
MemlockFacts read_memlock() noexcept;

// Raises the soft limit to the hard limit. Returns a note if that changed it.
std::optional<Finding> raise_memlock_limit();

// The part that follows "Cannot allocate memory": "; the locked-memory limit is 64 KiB ...". Empty
// if locked memory is not the reason.
std::string memlock_advice(const Error& error, const MemlockFacts& facts = read_memlock());

// "64 KiB", "1.5 GiB", "unlimited".
std::string bytes_text(std::uint64_t bytes);

}  // namespace beeline
