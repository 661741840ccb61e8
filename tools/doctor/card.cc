// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/card.h"

#include <fmt/format.h>

#include <string_view>

#include "plugin/checks/words.h"
namespace beeline::doctor {
namespace {

using checks::GidRow;
using checks::Host;
using checks::Port;
using checks::RdmaDevice;
using checks::Tree;

// The hard limit, to which the plugin raises the soft one.
std::string locked_memory(const Tree& tree) {
  constexpr std::string_view kName = "Max locked memory";
  for (const std::string& line : tree.lines("/proc/self/limits")) {
    if (!line.starts_with(kName)) continue;
    const std::vector<std::string> words =
        checks::split(std::string_view(line).substr(kName.size()));
    return words.size() < 2 ? "" : words[1];
  }
  return "";
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
  if (name == "BEELINE_SYSFS_ROOT") return false;  // a folder of one host
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
  const bool has_peer_memory =
      host.tree.has("/sys/module/nvidia_peermem") || host.tree.has("/sys/module/nv_peer_mem");
  card.emplace_back("peer-memory module", has_peer_memory ? "loaded" : "not loaded");
  card.emplace_back("locked memory", locked_memory(host.tree));
  for (const RdmaDevice& device : host.devices) add_device(card, host, device);
  for (const Environ::Variable& variable : host.environ.variables()) {
    if (is_setting(variable.name)) card.emplace_back(variable.name, variable.value);
  }
  return card;
}

}  // namespace beeline::doctor
