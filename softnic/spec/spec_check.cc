// SPDX-License-Identifier: Apache-2.0
// One function for each rule; find_fault() calls them in turn. The types and ranges of single
// values were checked when the file was read (spec_toml.cc).
#include "softnic/spec/spec_check.h"

#include <fmt/format.h>

#include <set>

#include "softnic/spec/fabric_limits.h"
#include "softnic/spec/names.h"
#include "softnic/spec/pci_path.h"

namespace softnic {
namespace {

using Fault = std::optional<SpecFault>;

// Remembers which port or device uses a name or address, so that an error can name both users.
class Owners {
 public:
  // Returns the earlier owner; empty if `thing` is new.
  std::string claim(const std::string& thing, const std::string& owner) {
    const auto [entry, is_new] = owners_.emplace(thing, owner);
    return is_new ? "" : entry->second;
  }

 private:
  std::map<std::string, std::string> owners_;
};

Fault check_counts(const FabricSpec& spec) {
  if (spec.hosts.empty()) return SpecFault{"", "no host: a fabric needs at least one [[host]]"};
  if (spec.hosts.size() > kMaxHosts)
    return SpecFault{spec.hosts[kMaxHosts].name,
                     fmt::format("{} hosts; at most {}", spec.hosts.size(), kMaxHosts)};
  std::size_t devices = 0;
  for (const HostSpec& host : spec.hosts) {
    devices += host.devices.size();
    if (devices > kMaxDevices)
      return SpecFault{host.name, fmt::format("more than {} devices in the fabric", kMaxDevices)};
  }
  return {};
}

Fault check_names(const FabricSpec& spec) {
  std::set<std::string> hosts;
  for (const HostSpec& host : spec.hosts) {
    if (!hosts.insert(host.name).second)
      return SpecFault{host.name, fmt::format("two hosts are named \"{}\"", host.name)};
    std::set<std::string> names;
    for (const DeviceSpec& device : host.devices)
      if (!names.insert(device.name).second)
        return SpecFault{
            device_place(host, device),
            fmt::format("host {} has two devices named \"{}\"", host.name, device.name)};
    for (const GpuSpec& gpu : host.gpus)
      if (!names.insert(gpu.name).second)
        return SpecFault{
            host.name + "/" + gpu.name,
            fmt::format("host {} has two devices or GPUs named \"{}\"", host.name, gpu.name)};
  }
  return {};
}

Fault check_netdevs(const HostSpec& host) {
  Owners owners;
  for (const DeviceSpec& device : host.devices)
    for (std::size_t p = 0; p < device.ports.size(); ++p) {
      const std::string& netdev = device.ports[p].netdev;
      const std::string place = port_place(host, device, p);
      if (netdev.empty()) continue;
      if (const std::string other = owners.claim(netdev, place); !other.empty())
        return SpecFault{place, fmt::format("netdev \"{}\" is already used by {}", netdev, other)};
    }
  return {};
}

Fault check_lids(const FabricSpec& spec) {
  Owners owners;
  for (const HostSpec& host : spec.hosts)
    for (const DeviceSpec& device : host.devices)
      for (std::size_t p = 0; p < device.ports.size(); ++p) {
        const PortSpec& port = device.ports[p];
        const std::string place = port_place(host, device, p);
        if (port.lid == 0) continue;
        const std::string other = owners.claim(fmt::format("{} {}", port.lid, port.network), place);
        if (!other.empty())
          return SpecFault{place, fmt::format("lid {} is already used by {}", port.lid, other)};
      }
  return {};
}

// A port may have the same GID twice, as RoCE v1 and v2. Two ports never have the same GID.
Fault check_gids(const FabricSpec& spec) {
  Owners ports;
  Owners entries;
  for (const HostSpec& host : spec.hosts)
    for (const DeviceSpec& device : host.devices)
      for (std::size_t p = 0; p < device.ports.size(); ++p)
        for (const GidSpec& gid : device.ports[p].gids) {
          const std::string place = port_place(host, device, p);
          const std::string raw = gid_text(gid.raw);
          const std::string other = ports.claim(raw, place);
          if (!other.empty() && other != place)
            return SpecFault{
                place, fmt::format("gid {} (index {}) is already on {}", raw, gid.index, other)};
          const std::string kind = fmt::format("{} {}", raw, static_cast<int>(gid.kind));
          if (!entries.claim(kind, place).empty())
            return SpecFault{
                place, fmt::format("gid {} appears twice with the same type on {}", raw, place)};
          const std::string slot = fmt::format("{} #{}", place, gid.index);
          if (!entries.claim(slot, place).empty())
            return SpecFault{place,
                             fmt::format("gid index {} appears twice on {}", gid.index, place)};
        }
  return {};
}

// Checks the path of each function against the tree that the earlier paths form.
class PciTree {
 public:
  Fault add(const std::string& place, const std::string& text) {
    auto path = parse_pci_path(text);
    if (!path) return SpecFault{place, path.error().text};
    const std::size_t depth = path->steps.size();
    for (std::size_t i = 0; i < depth; ++i) {
      const std::string& step = path->steps[i];
      const std::string above = path->path_to(i);
      if (const std::string other = parents_.claim(step, above); !other.empty() && other != above)
        return SpecFault{
            place, fmt::format("{} is below {} here but below {} elsewhere", step, above, other)};
      const std::string bus = step.substr(0, 7);
      if (const std::string other = buses_.claim(bus, above); !other.empty() && other != above)
        return SpecFault{place, fmt::format("bus {} is below {} here but below {} elsewhere", bus,
                                            above, other)};
      if (Fault fault = claim_role(place, step, i + 1 == depth)) return fault;
    }
    return {};
  }

 private:
  Fault claim_role(const std::string& place, const std::string& step, bool is_function) {
    const std::string role = is_function ? place : "a bridge";
    const std::string other = roles_.claim(step, role);
    if (other.empty() || (!is_function && other == role)) return {};
    return SpecFault{place, fmt::format("PCI address {} is already used by {}", step, other)};
  }

  Owners parents_;
  Owners buses_;
  Owners roles_;
};

Fault check_pci(const HostSpec& host) {
  PciTree tree;
  for (const DeviceSpec& device : host.devices)
    if (Fault fault = tree.add(device_place(host, device), device.pci)) return fault;
  for (const GpuSpec& gpu : host.gpus)
    if (Fault fault = tree.add(host.name + "/" + gpu.name, gpu.pci)) return fault;
  return {};
}

Fault check_numa_node(const HostSpec& host, const std::string& place, int node) {
  if (node < static_cast<int>(host.numa_nodes)) return {};
  return SpecFault{place, fmt::format("numa {} is out of range: host {} has {} NUMA node{}", node,
                                      host.name, host.numa_nodes, host.numa_nodes == 1 ? "" : "s")};
}

Fault check_numa(const HostSpec& host) {
  for (const DeviceSpec& device : host.devices)
    if (Fault fault = check_numa_node(host, device_place(host, device), device.numa)) return fault;
  for (const GpuSpec& gpu : host.gpus)
    if (Fault fault = check_numa_node(host, host.name + "/" + gpu.name, gpu.numa)) return fault;
  return {};
}

}  // namespace

std::string device_place(const HostSpec& host, const DeviceSpec& device) {
  return host.name + "/" + device.name;
}

std::string port_place(const HostSpec& host, const DeviceSpec& device, std::size_t port_index) {
  return fmt::format("{}/{}:{}", host.name, device.name, port_index + 1);
}

std::optional<SpecFault> find_fault(const FabricSpec& spec) {
  if (Fault fault = check_counts(spec)) return fault;
  if (Fault fault = check_names(spec)) return fault;
  for (const HostSpec& host : spec.hosts) {
    if (Fault fault = check_pci(host)) return fault;
    if (Fault fault = check_numa(host)) return fault;
    if (Fault fault = check_netdevs(host)) return fault;
  }
  if (Fault fault = check_lids(spec)) return fault;
  return check_gids(spec);
}

}  // namespace softnic
