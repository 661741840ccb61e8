// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/memlock.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace beeline {
namespace {

constexpr std::uint64_t kCapIpcLock = 14;

std::uint64_t limit_of(rlim_t value) noexcept { return value == RLIM_INFINITY ? kNoLimit : value; }

// Reads lines like "VmLck:  12 kB" from /proc/self/status.
void read_status(MemlockFacts& facts) noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/status", "re"),
                                                             std::fclose);
  if (file == nullptr) return;
  char line[256];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned long long value = 0;
    if (std::sscanf(line, "VmLck: %llu kB", &value) == 1) facts.locked_bytes = value * 1024;
    if (std::sscanf(line, "VmPin: %llu kB", &value) == 1) facts.pinned_bytes = value * 1024;
    if (std::sscanf(line, "CapEff: %llx", &value) == 1) {
      facts.can_exceed = (value >> kCapIpcLock & 1) != 0;
    }
  }
}

}  // namespace

MemlockFacts read_memlock() noexcept {
  MemlockFacts facts;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    facts.soft_bytes = limit_of(limit.rlim_cur);
    facts.hard_bytes = limit_of(limit.rlim_max);
  }
  read_status(facts);
  return facts;
}

std::optional<Finding> raise_memlock_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == limit.rlim_max) {
    return std::nullopt;
  }
  const std::uint64_t before = limit_of(limit.rlim_cur);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return std::nullopt;
  return Finding{.id = "memlock-raised",
                 .severity = Severity::kNote,
                 .fact = "raised the locked-memory limit of this process from " +
                         bytes_text(before) + " to " + bytes_text(limit_of(limit.rlim_max))};
}

std::string memlock_advice(const Error& error, const MemlockFacts& facts) {
  // With a limit of 0, the kernel returns EPERM instead of ENOMEM.
  const bool nothing_allowed = error.sys_errno == EPERM && facts.soft_bytes == 0;
  if (error.code != Errc::kNoMemory && !nothing_allowed) return {};

  const std::string held = "this process holds " + bytes_text(facts.locked_bytes) + " locked and " +
                           bytes_text(facts.pinned_bytes) + " pinned";
  if (facts.soft_bytes == kNoLimit) {
    return "; locked memory is not limited (" + held +
           "), so memory of the host, the device or its container is used up";
  }
  const std::string limit =
      "the locked-memory limit is " + bytes_text(facts.soft_bytes) + " (ulimit -l)";
  if (facts.can_exceed) {
    return "; " + held + "; " + limit +
           " and does not apply to this process, except with drivers that apply it to every "
           "process "
           "(siw): raise it for those; with others, memory of the host or its container is used up";
  }
  return "; " + limit + ", " + held +
         "; raise it: docker run --ulimit memlock=-1, LimitMEMLOCK=infinity in a systemd unit "
         "(Slurm: PropagateResourceLimitsExcept=MEMLOCK), or memlock in /etc/security/limits.conf";
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes == kNoLimit) return "unlimited";
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  // One decimal, unless the number is whole.
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace beeline
