// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "common/base/fd.h"
#include "plugin/device/sysfs.h"
#include "topology/read/sysfs_files.h"

namespace beeline::checks {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::string_view kSysfs = "/sys";
constexpr std::string_view kKernelLog = "/dev/kmsg";

Access access_of(int error) noexcept {
  switch (error) {
    case 0: return Access::kRead;
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO: return Access::kAbsent;
    case EACCES:
    case EPERM: return Access::kDenied;
    default: return Access::kFailed;
  }
}

Text failed(int error) {
  return {.access = access_of(error), .error = std::generic_category().message(error)};
}

}  // namespace

std::string below(std::string_view folder, std::string_view name) {
  std::string path(folder);
  path += '/';
  return path += name;
}

Tree::Tree(std::string root, const std::string& sysfs)
    : root_(root.empty() ? std::move(root) : real_path(root)),
      sysfs_(sysfs.empty() ? root_ + std::string(kSysfs) : sysfs) {}

std::string Tree::place(const std::string& path) const {
  const bool is_sysfs = path == kSysfs || path.starts_with("/sys/");
  return is_sysfs ? sysfs_ + path.substr(kSysfs.size()) : root_ + path;
}

int Tree::refusal_of(const std::string& path) const {
  if (refused_.empty()) return 0;
  const std::string real = real_path(place(path));
  if (!real.starts_with(root_)) return 0;
  const auto found = refused_.find(real.substr(root_.size()));
  return found == refused_.end() ? 0 : found->second;
}

// Where a path of a recorded host really is; empty if that is outside of it, because of a link or
// of
// ".." in a name that a stranger has written.
std::string Tree::inside(const std::string& path) const {
  std::string where = place(path);
  if (is_live()) return where;
  const std::string real = real_path(where);
  const bool is_inside = real == root_ || real.starts_with(root_ + "/");
  return is_inside ? real : std::string();
}

Text Tree::read(const std::string& path) const {
  if (const int error = refusal_of(path); error != 0) return failed(error);
  const UniqueFd file(::open(inside(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return failed(errno);
  Text text = {.access = Access::kRead};
  std::array<char, 16384> part{};
  while (true) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    // The kernel's log gives one message for each read: EPIPE if it was overwritten meanwhile, and
    // EAGAIN at the end.
    if (got < 0 && (errno == EINTR || errno == EPIPE)) continue;
    if (got == 0 || (got < 0 && errno == EAGAIN)) break;
    if (got < 0) return failed(errno);
    text.text.append(part.data(), static_cast<std::size_t>(got));
    if (text.text.size() <= 2 * kMostBytes) continue;
    if (path != kKernelLog) break;
    text.text.erase(0, kMostBytes);  // the newest messages matter
  }
  return text;
}

std::vector<std::string> Tree::lines(const std::string& path) const {
  const std::string text = read(path).text;
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

std::vector<std::string> Tree::names(const std::string& path) const {
  return topology::names_in(inside(path));
}

bool Tree::has(const std::string& path) const { return topology::is_there(inside(path)); }

std::string Tree::link(const std::string& path) const {
  const std::size_t at = path.rfind('/');
  const std::string folder = inside(path.substr(0, at));
  return folder.empty() && !is_live() ? std::string()
                                      : topology::link_target(folder + path.substr(at));
}

Access Tree::access(const std::string& path) const {
  if (const int error = refusal_of(path); error != 0) return access_of(error);
  const std::string where = inside(path);
  // A recorded device is an ordinary file. Another one is not opened, since that may have effects.
  if (!is_live()) return has(path) ? Access::kRead : Access::kAbsent;
  const UniqueFd file(::open(where.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  return access_of(file ? 0 : errno);
}

}  // namespace beeline::checks
