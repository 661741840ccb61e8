// SPDX-License-Identifier: Apache-2.0
//
// The files of a host: /proc, /sys and others, below a folder that takes the place of "/". So a
// recorded host is read like a live one. A file that is missing is told from one that this user may
// not read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace beeline::checks {

enum class Access : std::uint8_t {
  kRead,
  kAbsent,
  kDenied,  // this user may not read it
  kFailed,  // another error
};

struct Text {
  Access access = Access::kAbsent;
  std::string text = {};
  std::string error = {};  // "Permission denied"; empty if it was read

  bool is_read() const noexcept { return access == Access::kRead; }
  std::string line() const { return text.substr(0, text.find('\n')); }
};

// "folder/name".
std::string below(std::string_view folder, std::string_view name);

// Lifecycle: a value. Threads: any, while nobody changes it.
class Tree {
 public:
  // `sysfs` takes the place of /sys; empty: the folder `sys` below `root`.
  explicit Tree(std::string root = "", const std::string& sysfs = "");

  // The paths are those of a live host: "/proc/self/limits". At most 2 MiB of a file are read.
  Text read(const std::string& path) const;
  // The first line; empty if it cannot be read.
  std::string line(const std::string& path) const { return read(path).line(); }
  std::vector<std::string> lines(const std::string& path) const;
  // The sorted names in a folder.
  std::vector<std::string> names(const std::string& path) const;
  bool has(const std::string& path) const;
  // The target of a symbolic link as it is written; empty if it is none.
  std::string link(const std::string& path) const;
  // Whether this user may open the file for reading and writing.
  Access access(const std::string& path) const;

  // Where the path is.
  std::string place(const std::string& path) const;
  const std::string& sysfs() const noexcept { return sysfs_; }
  bool is_live() const noexcept { return root_.empty(); }

  // Says that reading this file gives that error, as on the recorded host. Its path has no links.
  void refuse(const std::string& path, int error) { refused_[path] = error; }

 private:
  int refusal_of(const std::string& path) const;
  std::string inside(const std::string& path) const;

  std::string root_;
  std::string sysfs_;
  std::map<std::string, int> refused_;
};

}  // namespace beeline::checks
