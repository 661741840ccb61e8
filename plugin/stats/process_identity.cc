// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/process_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>

#include "common/base/fd.h"

namespace beeline {
namespace {

// The text is "PID (NAME) STATE PPID ...". The name may contain blanks and parentheses, but the
// last parenthesis is its end. The start time is the 20th word after it.
std::optional<std::uint64_t> start_time_in(std::string_view stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  stat.remove_prefix(name_end + 1);
  for (int word = 0; word < 20; ++word) {
    const size_t blank = stat.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    stat.remove_prefix(blank + 1);
  }
  std::uint64_t ticks = 0;
  const auto parsed = std::from_chars(stat.data(), stat.data() + stat.size(), ticks);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return ticks;
}

}  // namespace

std::optional<std::uint64_t> process_start_time(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  char text[1024];  // 52 numbers and a name of 16 letters
  const ssize_t length = ::read(fd.get(), text, sizeof(text));
  if (length <= 0) return std::nullopt;
  return start_time_in({text, static_cast<size_t>(length)});
}

}  // namespace beeline
