// SPDX-License-Identifier: Apache-2.0
//
// Checks whether a folder can be used.
#include "plugin/runtime/folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace beeline {
namespace {

// The required access: X_OK to look up names in the folder, W_OK to create a file in it.
int why_useless(const std::string& folder, int use) {
  const UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return fd && ::faccessat(AT_FDCWD, folder.c_str(), use, AT_EACCESS) == 0 ? 0 : errno;
}

}  // namespace

std::vector<std::string> folder_complaints(const Config& config) {
  const Config usual;
  std::vector<std::string> found;
  const auto look = [&](const char* name, const std::string& folder, const std::string& standard,
                        int use, const char* consequence) {
    if (folder == standard) return;
    const int error = why_useless(folder, use);
    if (error == 0) return;
    found.push_back(std::string("BEELINE_") + name + "=" + folder + " " +
                    describe({Errc::kSystem, error, "cannot be used"}) + "; " + consequence);
  };
  if (config.stats) {
    look("STATS_DIR", config.stats_dir, usual.stats_dir, W_OK | X_OK,
         "other processes cannot read this process's statistics; name a folder that it can write "
         "to");
  }
  look("SYSFS_ROOT", config.sysfs_root, usual.sysfs_root, X_OK,
       "the places of devices and their network interfaces are unknown; unset it, or name a folder "
       "like /sys");
  return found;
}

}  // namespace beeline
