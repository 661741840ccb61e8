// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"
#include "plugin/device/memlock.h"

namespace beeline::checks {
namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
constexpr const char* kLimitsFile = "/proc/self/limits";
// One communicator of a small job registers about as much.
constexpr std::uint64_t kLeastLocked = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastFiles = 16384;
constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 30;
constexpr std::uint64_t kCapIpcLock = 14;

std::uint64_t number(const std::string& text) {
  return text == "unlimited" || text == "max" ? kUnlimited
                                              : std::strtoull(text.c_str(), nullptr, 10);
}

// The hard limit, to which a process may raise the soft one before it:
// "Max locked memory         8388608              8388608              bytes".
std::optional<std::string> hard_limit(const Tree& tree, std::string_view name) {
  for (const std::string& line : tree.lines(kLimitsFile)) {
    if (!line.starts_with(name)) continue;
    const std::vector<std::string> words = split(std::string_view(line).substr(name.size()));
    if (words.size() >= 2) return words[1];
  }
  return {};
}

// The capability counts only in the first user namespace.
bool is_first_user_namespace(const Tree& tree) {
  const std::vector<std::string> map = split(tree.line("/proc/self/uid_map"));
  return map.size() != 3 || (map[0] == "0" && map[1] == "0" && map[2] == "4294967295");
}

bool may_lock_more(const Tree& tree) {
  if (!is_first_user_namespace(tree)) return false;
  for (const std::string& line : tree.lines("/proc/self/status")) {
    if (!line.starts_with("CapEff:")) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> kCapIpcLock & 1) != 0;
  }
  return false;
}

// siw applies the limit to every process.
bool has_siw(const Host& host) {
  return std::ranges::any_of(
      host.devices, [](const RdmaDevice& device) { return device.name.starts_with("siw"); });
}

void check_locked_memory(const Host& host, Findings& found) {
  const auto limit = hard_limit(host.tree, "Max locked memory");
  if (!limit) {
    return found.add_unknown(
        "memlock-low", {.fact = "the limits cannot be read: " + host.tree.read(kLimitsFile).error,
                        .source = kLimitsFile});
  }
  // The plugin raises the soft limit to the hard one.
  const std::uint64_t bytes = number(*limit);
  if (bytes >= kLeastLocked || (may_lock_more(host.tree) && !has_siw(host))) return;
  found.add("memlock-low", {.fact = "this process may lock " + bytes_text(bytes) + " of memory",
                            .source = kLimitsFile});
}

std::string used_up(const std::string& device, const std::string& resource, std::uint64_t used,
                    const std::string& limit) {
  return "the cgroup of this process uses " + std::to_string(used) + " " + resource + " of " +
         device + ", and may use " + limit;
}

}  // namespace

void check_limits(const Host& host, Findings& found) {
  check_locked_memory(host, found);
  const auto files = hard_limit(host.tree, "Max open files");
  if (files && number(*files) < kLeastFiles) {
    found.add("files-limit-low",
              {.fact = "this process may open " + *files + " files", .source = kLimitsFile});
  }
}

void check_rdma_cgroup(const Host& host, Findings& found) {
  std::string own;
  for (const std::string& line : host.tree.lines("/proc/self/cgroup")) {
    if (line.starts_with("0::")) own = line.substr(3) == "/" ? "" : line.substr(3);
  }
  const std::string folder = "/sys/fs/cgroup" + own;
  // "mlx5_0 hca_handle=2 hca_object=2000"
  const auto values_of = [&](const std::string& path) {
    std::map<std::string, std::map<std::string, std::string>> all;
    for (const std::string& line : host.tree.lines(path)) {
      const std::vector<std::string> words = split(line);
      for (const std::string& word : words) {
        const std::size_t at = word.find('=');
        if (at != std::string::npos) all[words[0]][word.substr(0, at)] = word.substr(at + 1);
      }
    }
    return all;
  };
  auto current = values_of(folder + "/rdma.current");
  for (const auto& [device, limits] : values_of(folder + "/rdma.max")) {
    for (const auto& [resource, limit] : limits) {
      const std::uint64_t used = number(current[device][resource]);
      if (number(limit) == kUnlimited || used * 10 < number(limit) * 9) continue;
      found.add("rdma-cgroup-limit",
                {.subject = device,
                 .fact = used_up(device, resource, used, limit),
                 .source = folder + "/rdma.max"},
                {{"device", device}, {"folder", folder}});
    }
  }
}

void check_shared_memory(const Host& host, Findings& found) {
  std::uint64_t kib = 0;  // 0: no limit of its own
  for (const std::string& line : host.tree.lines("/proc/self/mounts")) {
    const std::vector<std::string> words = split(line);  // source, place, type, options
    if (words.size() < 4 || words[1] != "/dev/shm") continue;
    const std::size_t at = words[3].find("size=");
    kib = at == std::string::npos ? 0 : std::strtoull(words[3].c_str() + at + 5, nullptr, 10);
  }
  if (kib == 0 || kib >= kLeastShared / 1024) return;
  found.add("shared-memory-small", {.subject = "/dev/shm",
                                    .fact = "/dev/shm has " + bytes_text(kib * 1024),
                                    .source = "/proc/self/mounts"});
}

}  // namespace beeline::checks
