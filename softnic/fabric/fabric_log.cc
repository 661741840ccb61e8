// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/fabric_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/fd.h"

namespace softnic {
namespace {

constexpr std::size_t kMaxWords = 400;
constexpr std::int64_t kRoomForLastLine = 256;

std::string one_line(std::string_view words) {
  std::string line(words.substr(0, kMaxWords));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return line;
}

std::string line_of(const Fabric& fabric, std::string_view where, std::string_view words) {
  const std::int64_t ns = std::max<std::int64_t>(beeline::now_ns() - fabric.header().started_ns, 0);
  return fmt::format("{}.{:06}  {}  {}\n", ns / beeline::kNsPerSec,
                     ns % beeline::kNsPerSec / beeline::kNsPerUs, where, one_line(words));
}

std::int64_t size_of(int fd) {
  struct stat facts = {};
  return ::fstat(fd, &facts) == 0 ? facts.st_size : kMaxLogBytes;
}

void append(int fd, const std::string& line) { (void)!::write(fd, line.data(), line.size()); }

// Pads the last line up to the size limit, so that the size shows that the line was written. The
// lock prevents a second one; it is only tried, because its holder may be a stopped process.
void append_last_line(const Fabric& fabric, int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return;
  const std::int64_t room = kMaxLogBytes - size_of(fd);
  std::string line = line_of(fabric, "-", "the log is full: nothing more is logged");
  if (room > 0) {
    line.pop_back();
    line.resize(std::max(line.size(), static_cast<std::size_t>(room - 1)), ' ');
    append(fd, line + '\n');
  }
  ::flock(fd, LOCK_UN);
}

void log_at(const Fabric& fabric, const std::string& where, std::string_view words) {
  const beeline::UniqueFd fd = fabric.files().open_file("log", O_CREAT | O_APPEND);
  if (!fd) return;
  const std::string line = line_of(fabric, where, words);
  const std::int64_t size = size_of(fd.get());
  if (size + static_cast<std::int64_t>(line.size()) <= kMaxLogBytes - kRoomForLastLine) {
    append(fd.get(), line);
  } else if (size < kMaxLogBytes) {
    append_last_line(fabric, fd.get());
  }
}

}  // namespace

std::string log_path(const Fabric& fabric) { return fabric.dir() + "/log"; }

void log_port(const Fabric& fabric, PortRef where, std::string_view words) {
  log_at(fabric, port_name(fabric, where), words);
}

void log_device(const Fabric& fabric, std::uint32_t device, std::string_view words) {
  log_at(fabric, device_name(fabric, device), words);
}

void log_fabric(const Fabric& fabric, std::string_view words) { log_at(fabric, "-", words); }

}  // namespace softnic
