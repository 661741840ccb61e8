// SPDX-License-Identifier: Apache-2.0
// Creates files, directories and links below one root. In /dev/shm every file takes a page, so
// files with equal content are hard links to one file; this also makes large fabrics quick to
// write. A file must therefore be changed by replace_file() and never be written in place.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/problem.h"

namespace softnic {

class SysfsWriter {
 public:
  explicit SysfsWriter(std::string root) : root_(std::move(root)) {}

  // Paths are relative to the root. Missing parent directories are created.
  void dir(const std::string& path);
  void file(const std::string& path, std::string_view content);  // content as it is
  void line(const std::string& path, std::string_view text);     // with a newline
  // A symbolic link at `path` to `target`, which is relative to the root. The link's text is
  // relative to its own directory, as in sysfs.
  void link(const std::string& path, const std::string& target);

  // The first error. Nothing is written after it.
  beeline::Outcome<void> result() const;

 private:
  std::string full(const std::string& path) const { return root_ + "/" + path; }
  void make_dirs(const std::string& path);
  void failed(const char* what, const std::string& path);

  std::string root_;
  std::map<std::string, std::string, std::less<>> written_;  // content -> a file that has it
  std::map<std::string, bool, std::less<>> dirs_;
  std::string error_;
};

// Replaces the file by a rename, so a reader sees either the old or the new content. False: errno.
bool replace_file(const std::string& path, std::string_view content);

}  // namespace softnic
