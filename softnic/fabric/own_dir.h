// SPDX-License-Identifier: Apache-2.0 A directory that belongs to this user and is closed to
// others, held by its descriptor. Any user may create entries of any name in /dev/shm. Files that
// are opened through the descriptor are inside this directory, even if its name is now that of
// another directory, and no link is followed.
#pragma once

#include <functional>
#include <string>

#include "common/base/fd.h"
#include "common/base/problem.h"

namespace softnic {

class OwnDir {
 public:
  static beeline::Outcome<OwnDir> open(const std::string& path);

  int fd() const noexcept { return fd_.get(); }
  const std::string& path() const noexcept { return path_; }  // for messages
  // For calls that need a path.
  std::string proc_path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

  // Read-write; empty, with errno set, if that fails.
  beeline::UniqueFd open_file(const std::string& name, int flags) const noexcept;
  void remove_file(const std::string& name) const noexcept;
  bool has_name() const noexcept;  // false: removed, or another directory has the name
  void for_each(const std::function<void(const std::string& name)>& visit) const;
  void empty() const;  // removes everything in it

 private:
  OwnDir(beeline::UniqueFd fd, std::string path) noexcept
      : fd_(std::move(fd)), path_(std::move(path)) {}

  beeline::UniqueFd fd_;
  std::string path_;
};

}  // namespace softnic
