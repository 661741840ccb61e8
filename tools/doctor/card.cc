// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace beeline::doctor {
namespace {

using checks::GidRow;
using checks::Host;
using checks::Port;
using checks::RdmaDevice;
using checks::Tree;

// A part of a line: what is behind the name, without blanks around it.
std::string value_behind(const std::vector<std::string>& lines, std::string_view name) {
  for (const std::string& line : lines) {
    if (!line.starts_with(name)) continue;
    const std::size_t begin = line.find_first_not_of(" \t:", name.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string locked_memory(const Tree& tree) {
  const std::string limits = value_behind(tree.lines("/proc/self/limits"), "Max locked memory");
  const std::size_t at = limits.find_first_of(" \t");
  return limits.substr(0, at);
}

// Not the address itself, which differs between hosts.
std::string kind_of(const GidRow& gid) {
  return fmt::format("{} {}",
                     gid.is_link_local()    ? "link-local"
                     : gid.is_ipv4_mapped() ? "IPv4"
                                            : "IPv6",
                     gid.type);
}

void add_port(Card& card, const RdmaDevice& device, const Port& port) {
  const std::string name = label(device, port);
  card.emplace_back(name + ": state", port.state);
  card.emplace_back(name + ": speed", fmt::format("{} Gb/s", port.speed_mbps / 1000));
  card.emplace_back(name + ": link layer", port.is_ethernet ? "Ethernet" : "InfiniBand");
  if (port.mtu > 0) card.emplace_back(name + ": MTU", std::to_string(port.mtu));
  if (!port.is_ethernet) return;
  for (const GidRow& gid : port.gids) {
    card.emplace_back(fmt::format("{}: GID index {}", name, gid.index), kind_of(gid));
  }
}

void add_device(Card& card, const Host& host, const RdmaDevice& device) {
  card.emplace_back(device.name + ": model", device.model);
  card.emplace_back(device.name + ": firmware", device.firmware);
  if (!device.pci.empty()) {
    const std::string folder = "/sys/bus/pci/devices/" + device.pci;
    card.emplace_back(device.name + ": PCIe",
                      fmt::format("{} x{}", host.tree.line(folder + "/current_link_speed"),
                                  host.tree.line(folder + "/current_link_width")));
    card.emplace_back(device.name + ": IOMMU", host.tree.line(folder + "/iommu_group/type"));
  }
  for (const Port& port : device.ports) add_port(card, device, port);
}

bool is_setting(std::string_view name) noexcept {
  return name.starts_with("NCCL_") || name.starts_with("BEELINE_") || name.starts_with("RDMAV_") ||
         name.starts_with("MLX5_");
}

}  // namespace

Card card_of(const Host& host) {
  Card card;
  card.emplace_back("RDMA devices", std::to_string(host.devices.size()));
  card.emplace_back("GPUs", std::to_string(host.gpus.size()));
  card.emplace_back("kernel", host.tree.line("/proc/sys/kernel/osrelease"));
  card.emplace_back("NVIDIA's driver", host.tree.line("/proc/driver/nvidia/version"));
  card.emplace_back("peer-memory module",
                    host.tree.has("/sys/module/nvidia_peermem") ? "loaded" : "not loaded");
  card.emplace_back("locked memory", locked_memory(host.tree));
  for (const RdmaDevice& device : host.devices) add_device(card, host, device);
  for (const Environ::Variable& variable : host.environ.variables()) {
    if (is_setting(variable.name)) card.emplace_back(variable.name, variable.value);
  }
  return card;
}

}  // namespace beeline::doctor
