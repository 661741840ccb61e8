// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/result.h"
#include "plugin/device/gid_choice.h"
#include "plugin/wire/limits.h"

namespace beeline {
namespace {

struct FolderSetting {
  const char* variable;
  const std::string& folder;
  const std::string& standard;
  int access;  // X_OK to look up names in the folder, W_OK to create a file in it
  const char* why;
  const char* fix;
};

std::optional<Finding> check_folder(const FolderSetting& setting) {
  if (setting.folder == setting.standard) return std::nullopt;
  const UniqueFd fd(::open(setting.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd && ::faccessat(AT_FDCWD, setting.folder.c_str(), setting.access, AT_EACCESS) == 0) {
    return std::nullopt;
  }
  const int error = errno;
  return Finding{.id = "folder-unusable",
                 .severity = Severity::kWarning,
                 .subject = setting.variable,
                 .fact = std::string(setting.variable) + "=" + setting.folder + " " +
                         describe({Errc::kSystem, error, "cannot be used"}),
                 .why = setting.why,
                 .fix = setting.fix};
}

std::optional<Finding> check_timeout(const Config& config, const Environ& environ) {
  const std::optional<LongTimeout> timeout = long_timeout(config, environ);
  if (!timeout) return std::nullopt;
  return Finding{.id = "timeout-long",
                 .severity = Severity::kWarning,
                 .subject = timeout->variable,
                 .fact = timeout->variable + "=" + std::to_string(config.timeout) +
                         ": a device reports a dead path only after " +
                         std::to_string(timeout->least_ns / kNsPerSec) + " to " +
                         std::to_string(4 * timeout->least_ns / kNsPerSec) +
                         " s, if its port stays up; with the default, after 0.5 to 2 s",
                 .why = "a connection without another path stands still for that long",
                 .fix = "unset " + timeout->variable + ", or set BEELINE_TIMEOUT=14"};
}

}  // namespace

std::vector<Finding> check_settings(const Config& config, const Environ& environ) {
  const Config usual;
  std::vector<Finding> found;
  const auto check = [&](const FolderSetting& setting) {
    if (auto finding = check_folder(setting)) found.push_back(*std::move(finding));
  };
  if (config.stats) {
    check({"BEELINE_STATS_DIR", config.stats_dir, usual.stats_dir, W_OK | X_OK,
           "other processes cannot read this process's statistics",
           "name a folder that this process can write to"});
  }
  check({"BEELINE_SYSFS_ROOT", config.sysfs_root, usual.sysfs_root, X_OK,
         "the places of devices and their network interfaces are unknown",
         "unset it, or name a folder like /sys"});
  if (const auto range = parse_gid_range(config.addr_range); !range) {
    found.push_back({.id = "address-range-not-understood",
                     .severity = Severity::kWarning,
                     .subject = "ADDR_RANGE",
                     .fact = "ADDR_RANGE is not used: " + range.error().text});
  }
  if (auto finding = check_timeout(config, environ)) found.push_back(*std::move(finding));
  if (config.qps_per_connection > int{wire::kMaxPaths}) {
    const std::string most = std::to_string(wire::kMaxPaths);
    found.push_back({.id = "queue-pairs-cut",
                     .subject = "QPS_PER_CONNECTION",
                     .fact = "QPS_PER_CONNECTION=" + std::to_string(config.qps_per_connection) +
                             ": " + most + " are used, because a connection has at most " + most +
                             " queue pairs"});
  }
  return found;
}

}  // namespace beeline
