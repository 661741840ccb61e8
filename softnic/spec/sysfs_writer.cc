// SPDX-License-Identifier: Apache-2.0
#include "softnic/spec/sysfs_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/base/fd.h"

namespace softnic {
namespace {

bool write_file(const std::string& path, std::string_view content) {
  const beeline::UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return false;
  while (!content.empty()) {
    const ssize_t count = ::write(fd.get(), content.data(), content.size());
    if (count < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// The relative path from the directory of `path` to `target`.
std::string relative(std::string_view path, std::string_view target) {
  const std::size_t shortest = std::min(path.size(), target.size());
  std::size_t shared = 0;
  for (std::size_t i = 0; i < shortest && path[i] == target[i]; ++i)
    if (path[i] == '/') shared = i + 1;
  // If the target is a directory above the link, the shared part ends before the target's own name.
  if (path.starts_with(target) && path.size() > target.size() && path[target.size()] == '/')
    shared = target.rfind('/') == std::string_view::npos ? 0 : target.rfind('/') + 1;
  std::string up;
  for (const char c : path.substr(shared))
    if (c == '/') up += "../";
  return up.append(target.substr(shared));
}

}  // namespace

void SysfsWriter::failed(const char* what, const std::string& path) {
  if (error_.empty()) error_ = fmt::format("cannot {} {}: {}", what, path, std::strerror(errno));
}

void SysfsWriter::make_dirs(const std::string& path) {
  if (!dirs_.emplace(path, true).second) return;
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash != 0) make_dirs(path.substr(0, slash));
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) failed("create the directory", path);
}

void SysfsWriter::dir(const std::string& path) {
  if (error_.empty()) make_dirs(full(path));
}

void SysfsWriter::file(const std::string& path, std::string_view content) {
  if (!error_.empty()) return;
  const std::string name = full(path);
  make_dirs(name.substr(0, name.rfind('/')));
  const auto same = written_.find(content);
  // A file system may limit the links of one file (EMLINK); then a new copy is written.
  if (same != written_.end() && ::link(same->second.c_str(), name.c_str()) == 0) return;
  if (!write_file(name, content)) return failed("write", name);
  written_[std::string(content)] = name;
}

void SysfsWriter::line(const std::string& path, std::string_view text) {
  file(path, std::string(text) + '\n');
}

void SysfsWriter::link(const std::string& path, const std::string& target) {
  if (!error_.empty()) return;
  const std::string name = full(path);
  make_dirs(name.substr(0, name.rfind('/')));
  if (::symlink(relative(path, target).c_str(), name.c_str()) != 0) failed("link", name);
}

beeline::Outcome<void> SysfsWriter::result() const {
  if (!error_.empty()) return beeline::fail(error_);
  return {};
}

bool replace_file(const std::string& path, std::string_view content) {
  const std::string fresh = fmt::format("{}.{}", path, ::getpid());
  if (!write_file(fresh, content)) return false;
  return ::rename(fresh.c_str(), path.c_str()) == 0;
}

}  // namespace softnic
