// SPDX-License-Identifier: Apache-2.0
// An open directory that belongs to this user and that other users cannot access. Any user may
// create entries of any name in /dev/shm. Files are therefore opened through the descriptor, which
// keeps them inside this directory even if its name is replaced, and links are never followed.
#pragma once

#include <functional>
#include <string>

#include "common/base/fd.h"
#include "common/base/problem.h"

namespace softnic {

class PrivateDir {
 public:
  static beeline::Outcome<PrivateDir> open(const std::string& path);

  int fd() const noexcept { return fd_.get(); }
  const std::string& path() const noexcept { return path_; }  // for messages
  // For calls that need a path.
  std::string proc_path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

  // Opens the file for reading and writing. Returns an empty descriptor and sets errno on failure.
  beeline::UniqueFd open_file(const std::string& name, int flags) const noexcept;
  void remove_file(const std::string& name) const noexcept;
  bool has_name() const noexcept;  // false: it was removed, or another directory has its name
  void for_each(const std::function<void(const std::string& name)>& visit) const;
  void empty() const;  // removes all its contents

 private:
  PrivateDir(beeline::UniqueFd fd, std::string path) noexcept
      : fd_(std::move(fd)), path_(std::move(path)) {}

  beeline::UniqueFd fd_;
  std::string path_;
};

}  // namespace softnic
