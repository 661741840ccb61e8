// SPDX-License-Identifier: Apache-2.0
#include "topology/read/sysfs_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "common/base/fd.h"

namespace beeline::topology {
namespace {

// "pci0000:17", the kernel's name of a root bus.
std::optional<PciAddress> parse_root_bus(std::string_view name) {
  if (!name.starts_with("pci")) return {};
  return parse_pci_address(std::string(name.substr(3)) + ":00.0");
}

}  // namespace

std::string first_line(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return {};
  std::array<char, 4096> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got <= 0) return {};
  const std::string_view all(text.data(), static_cast<std::size_t>(got));
  return std::string(all.substr(0, all.find('\n')));
}

std::string link_target(const std::string& path) {
  std::array<char, 4096> text{};
  const ssize_t got = ::readlink(path.c_str(), text.data(), text.size());
  return got <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(got));
}

std::vector<std::string> names_in(const std::string& path) {
  const auto close = [](DIR* folder) { ::closedir(folder); };
  const std::unique_ptr<DIR, decltype(close)> folder(::opendir(path.c_str()), close);
  std::vector<std::string> names;
  if (folder == nullptr) return names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads this folder's stream
  while (const dirent* const entry = ::readdir(folder.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

PciChain pci_chain_of(const std::string& target) {
  PciChain chain;
  for (std::size_t at = 0; at < target.size();) {
    const std::size_t end = std::min(target.find('/', at), target.size());
    const std::string_view name(target.data() + at, end - at);
    at = end + 1;
    if (const auto root_bus = parse_root_bus(name)) {
      chain = {.root_bus = root_bus};
    } else if (const auto function = parse_pci_address(name)) {
      chain.functions.push_back(*function);
    }
  }
  return chain;
}

std::optional<PciAddress> function_of(const std::string& path) {
  for (const std::string& link : {path, path + "/device"}) {
    const PciChain chain = pci_chain_of(link_target(link));
    if (!chain.functions.empty()) return chain.functions.back();
  }
  return {};
}

}  // namespace beeline::topology
