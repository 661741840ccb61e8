// SPDX-License-Identifier: Apache-2.0
//
// Locked memory: registering pins pages, and a low limit makes it fail with a bare "Cannot allocate
// memory". These functions raise the limit where that is allowed, and explain it where it is not.
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
  std::uint64_t locked_bytes = 0;  // VmLck; 0 when unknown
  std::uint64_t pinned_bytes = 0;  // VmPin: what RDMA has pinned
  bool may_exceed = false;         // CAP_IPC_LOCK: the limit does not hold
};
MemlockFacts read_memlock() noexcept;

// Raises the soft limit to the hard limit. Returns a note if that changed it.
std::optional<Finding> raise_memlock_limit();

// "registering 64 MiB with mlx5_0 failed: Cannot allocate memory; the locked-memory limit is 64 KiB
// ...". `doing` is the first part: "registering 64 MiB with mlx5_0". Other errors are described
// without advice, so that a caller may pass any.
std::string explain_enomem(std::string_view doing, const Error& error);
std::string explain_enomem(std::string_view doing, const Error& error, const MemlockFacts& facts);

// The part behind "Cannot allocate memory": "; the locked-memory limit is 64 KiB ...". Empty when
// locked memory is not the reason.
std::string memlock_advice(const Error& error);
std::string memlock_advice(const Error& error, const MemlockFacts& facts);

// "64 KiB", "1.5 GiB", "unlimited".
std::string bytes_text(std::uint64_t bytes);

}  // namespace beeline
