// SPDX-License-Identifier: Apache-2.0
//
// Other users and processes may change the directory at any time.
#include "plugin/stats/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/fd.h"
#include "include/beeline/stats_page.h"

namespace beeline {
namespace {

constexpr std::string_view kNamePrefix = "beeline-";
constexpr mode_t kStamped = 0400;
constexpr std::size_t kBlockBytes = 512;  // of st_blocks

// Removes a number from the front of the text. False if it has a sign or is not a number.
template <class T>
bool take_number(std::string_view* text, T* number) {
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, *number);
  if (error != std::errc{} || text->front() < '0' || text->front() > '9') return false;
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return true;
}

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

bool is_alive(const PageOwner& owner) {
  return process_start_time(static_cast<pid_t>(owner.pid)) == owner.start_time;
}

bool is_our_page(int fd, const struct stat& file) {
  std::uint64_t magic = 0;
  return S_ISREG(file.st_mode) && file.st_uid == ::geteuid() &&
         ::pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) && magic == BEELINE_STATS_MAGIC;
}

// It would tell nothing about why the process has ended.
bool has_no_connection(int fd) {
  std::uint32_t used = 0;
  return ::pread(fd, &used, sizeof used, offsetof(beeline_stats_header, slots_used)) ==
             sizeof used &&
         used == 0;
}

std::int64_t age_ns(const struct stat& file) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return (now.tv_sec - file.st_mtim.tv_sec) * kNsPerSec + (now.tv_nsec - file.st_mtim.tv_nsec);
}

// A page that is kept.
struct DeadPage {
  std::string name;
  std::int64_t age_ns;
  std::size_t bytes;  // of memory that it takes: the file is sparse
};

std::optional<DeadPage> sweep_one(int directory, const char* name, std::int64_t kept_ns) {
  // O_NONBLOCK, because it may be a named pipe that nobody else opens.
  const UniqueFd fd(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0 || !is_our_page(fd.get(), file)) return std::nullopt;
  // Its owner may be alive in another container that shares this directory, with other process ids.
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  if (has_no_connection(fd.get())) {
    ::unlinkat(directory, name, 0);
    return std::nullopt;
  }
  const std::size_t bytes = static_cast<std::size_t>(file.st_blocks) * kBlockBytes;
  if ((file.st_mode & 07777) != kStamped) {
    if (::futimens(fd.get(), nullptr) == 0) static_cast<void>(::fchmod(fd.get(), kStamped));
    return DeadPage{name, 0, bytes};
  }
  if (age_ns(file) < kept_ns) return DeadPage{name, age_ns(file), bytes};
  ::unlinkat(directory, name, 0);
  return std::nullopt;
}

// Returns how many stay.
std::size_t remove_oldest(int directory, std::vector<DeadPage> dead) {
  std::ranges::sort(dead, {}, &DeadPage::age_ns);
  std::size_t kept = 0;
  std::size_t bytes = 0;
  for (const DeadPage& page : dead) {
    bytes += page.bytes;
    if (kept < kMaxDeadPages && bytes <= kMaxDeadBytes) {
      ++kept;
    } else {
      ::unlinkat(directory, page.name.c_str(), 0);
    }
  }
  return kept;
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

std::string page_file_name(const PageOwner& owner) {
  return std::string(kNamePrefix) + std::to_string(owner.pid) + "-" +
         std::to_string(owner.start_time);
}

std::optional<PageOwner> parse_page_file_name(std::string_view name) {
  if (!name.starts_with(kNamePrefix)) return std::nullopt;
  const std::string_view whole = name;
  name.remove_prefix(kNamePrefix.size());
  PageOwner owner{};
  if (!take_number(&name, &owner.pid) || !name.starts_with('-')) return std::nullopt;
  name.remove_prefix(1);
  if (!take_number(&name, &owner.start_time) || !name.empty()) return std::nullopt;
  if (owner.pid > std::numeric_limits<pid_t>::max()) return std::nullopt;
  if (page_file_name(owner) != whole) return std::nullopt;  // zeros in front: a second name
  return owner;
}

std::size_t sweep_dead_pages(const std::string& directory, std::int64_t kept_ns) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), &::closedir);
  if (!open) return 0;
  std::vector<DeadPage> dead;
  std::size_t looks = 0;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::optional<PageOwner> owner = parse_page_file_name(entry->d_name);
    if (!owner || is_alive(*owner)) continue;
    auto page = sweep_one(::dirfd(open.get()), entry->d_name, kept_ns);
    if (page) dead.push_back(*std::move(page));
    if (++looks == kMaxPagesPerSweep) break;
  }
  return remove_oldest(::dirfd(open.get()), std::move(dead));
}

}  // namespace beeline
