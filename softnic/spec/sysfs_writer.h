// SPDX-License-Identifier: Apache-2.0
// Puts files, directories and links below one root. A real sysfs costs no memory; in /dev/shm every
// file costs a page. So files of equal content are hard links to one, which also makes big fabrics
// quick to write; whoever changes a file later must replace it (replace_file), never write into it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/problem.h"

namespace softnic {

class SysfsWriter {
 public:
  explicit SysfsWriter(std::string root) : root_(std::move(root)) {}

  // Paths are relative to the root; missing directories are made on the way.
  void dir(const std::string& path);
  void file(const std::string& path, std::string_view content);  // content as it is
  void line(const std::string& path, std::string_view text);     // with a newline
  // A link at `path` to the root-relative `target`, written relative as sysfs does.
  void link(const std::string& path, const std::string& target);

  // The first thing that failed. After it nothing more is written.
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

// Replaces the file's content at once: a reader sees the old or the new, never half. False: errno.
bool replace_file(const std::string& path, std::string_view content);

}  // namespace softnic
