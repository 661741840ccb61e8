// SPDX-License-Identifier: Apache-2.0
// Default addresses. They are derived from positions in the fabric file, so they are unique in the
// fabric and the same in every run, and GIDs have the order that mlx5 devices use.
#include "softnic/spec/fabric_spec.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

namespace softnic {
namespace {

using RawGid = std::array<std::uint8_t, 16>;

struct Place {
  std::uint32_t host = 0;
  std::uint32_t device = 0;  // on its host
  std::uint32_t port = 0;    // index, so port number minus one
};

std::uint8_t low_byte(std::uint32_t value) { return static_cast<std::uint8_t>(value & 0xff); }

// A GUID as mlx5 derives it from a MAC address: 02:50:HH | 03:00 | DD:DD:00, where the MAC address
// is locally administered, HH is the host and DD:DD the device.
std::uint64_t guid_of(const Place& place) {
  return 0x0250'0003'0000'0000 | std::uint64_t{place.host} << 40 | std::uint64_t{place.device} << 8;
}

RawGid link_local(std::uint64_t interface_id) {
  RawGid raw{0xfe, 0x80};
  for (std::size_t i = 0; i < 8; ++i)
    raw[8 + i] = static_cast<std::uint8_t>(interface_id >> (56 - 8 * i));
  return raw;
}

// The link-local address with the modified EUI-64 of the port's MAC, as the kernel's addrconf does
// it.
RawGid mac_link_local(std::uint64_t guid, std::uint32_t port_number) {
  const auto mac = port_mac(guid, port_number);
  RawGid raw = link_local(0);
  const std::array<std::uint8_t, 8> eui{
      static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  std::copy(eui.begin(), eui.end(), raw.begin() + 8);
  return raw;
}

// 10.DEVICE.HOST.x in 10.DEVICE.0.0/16: devices at the same position in their hosts share a subnet.
RawGid ipv4_mapped(const Place& place) {
  const std::uint32_t wrapped = place.device >> 8;  // a host may have more than 256 devices
  return {0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0xff,
          0xff,
          10,
          low_byte(place.device),
          low_byte(place.host),
          low_byte(1 + place.port + 2 * wrapped)};
}

void add_gids(const DeviceSpec& device, const Place& place, PortSpec& port) {
  const std::uint32_t number = place.port + 1;
  if (device.link_layer == LinkLayer::kInfiniBand) {
    port.gids = {{0, link_local(port_guid(device.guid, number)), GidKind::kIb}};
    return;
  }
  const RawGid local = mac_link_local(device.guid, number);
  const RawGid routed = ipv4_mapped(place);
  port.gids = {{0, local, GidKind::kRoceV1},
               {1, local, GidKind::kRoceV2},
               {2, routed, GidKind::kRoceV1},
               {3, routed, GidKind::kRoceV2}};
  std::erase_if(port.gids, [&](const GidSpec& gid) { return gid.index >= port.gid_table_len; });
}

// Assigns LIDs from 1 upward and skips those that the file gives.
class LidSource {
 public:
  explicit LidSource(const FabricSpec& spec) {
    for (const HostSpec& host : spec.hosts)
      for (const DeviceSpec& device : host.devices)
        for (const PortSpec& port : device.ports) taken_.insert(port.lid);
  }
  std::uint16_t next() {
    while (!taken_.insert(++last_).second) {
    }
    return last_;
  }

 private:
  std::set<std::uint16_t> taken_;
  std::uint16_t last_ = 0;
};

// Assigns eth0, eth1, ... on one host and skips names that the file gives.
class NetdevSource {
 public:
  explicit NetdevSource(const HostSpec& host) {
    for (const DeviceSpec& device : host.devices)
      for (const PortSpec& port : device.ports) taken_.insert(port.netdev);
  }
  std::string next() {
    std::string name;
    do {
      name = fmt::format("eth{}", next_++);
    } while (!taken_.insert(name).second);
    return name;
  }

 private:
  std::set<std::string> taken_;
  std::uint32_t next_ = 0;
};

// Puts every function without a PCI path below a root complex of its own, on buses that no path of
// the file mentions.
class PciSource {
 public:
  explicit PciSource(const HostSpec& host) {
    for (const DeviceSpec& device : host.devices) mention(device.pci);
    for (const GpuSpec& gpu : host.gpus) mention(gpu.pci);
  }
  std::string next() {
    while (mentioned_.contains(bus_name(0)) || mentioned_.contains(bus_name(1))) bus_ += 2;
    std::string path = fmt::format("pci{0}/{0}:01.0/{1}:00.0", bus_name(0), bus_name(1));
    bus_ += 2;
    return path;
  }

 private:
  // "0000:40": domain and bus. Past bus ff the next domain begins.
  std::string bus_name(std::uint32_t step) const {
    return fmt::format("{:04x}:{:02x}", (bus_ + step) >> 8, (bus_ + step) & 0xff);
  }
  void mention(const std::string& path) {
    for (std::size_t at = 0; at + 7 <= path.size(); ++at) mentioned_.insert(path.substr(at, 7));
  }
  std::set<std::string> mentioned_;
  std::uint32_t bus_ = 0x10;
};

void complete_host(HostSpec& host, std::uint32_t host_index, LidSource& lids) {
  NetdevSource netdevs(host);
  PciSource places(host);
  for (std::uint32_t d = 0; d < host.devices.size(); ++d) {
    DeviceSpec& device = host.devices[d];
    if (device.pci.empty()) device.pci = places.next();
    if (device.guid == 0) device.guid = guid_of({host_index, d, 0});
    if (device.ports.empty()) device.ports.emplace_back();
    for (std::uint32_t p = 0; p < device.ports.size(); ++p) {
      PortSpec& port = device.ports[p];
      const bool ethernet = device.link_layer == LinkLayer::kEthernet;
      if (ethernet && port.netdev.empty()) port.netdev = netdevs.next();
      if (!ethernet && port.lid == 0) port.lid = lids.next();
      if (port.gids.empty()) add_gids(device, {host_index, d, p}, port);
    }
  }
  for (GpuSpec& gpu : host.gpus)
    if (gpu.pci.empty()) gpu.pci = places.next();
}

}  // namespace

std::string gid_text(const std::array<std::uint8_t, 16>& raw) {
  std::string text;
  for (std::size_t i = 0; i < raw.size(); i += 2)
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", raw[i], raw[i + 1]);
  return text;
}

std::uint64_t port_guid(std::uint64_t device_guid, std::uint32_t port_number) {
  return device_guid + port_number;
}

std::array<std::uint8_t, 6> port_mac(std::uint64_t device_guid, std::uint32_t port_number) {
  const std::uint64_t guid = port_guid(device_guid, port_number);
  const auto byte = [guid](unsigned shift) { return static_cast<std::uint8_t>(guid >> shift); };
  return {byte(56), byte(48), byte(40), byte(16), byte(8), byte(0)};
}

FabricSpec default_fabric() { return even_fabric(2, 2); }

FabricSpec even_fabric(std::uint32_t hosts, std::uint32_t devices) {
  FabricSpec spec;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    HostSpec& host = spec.hosts.emplace_back();
    host.name = "h" + std::to_string(h);
    for (std::uint32_t d = 0; d < devices; ++d) {
      DeviceSpec& device = host.devices.emplace_back();
      device.name = "softnic" + std::to_string(d);
      device.ports.emplace_back();
    }
  }
  complete(spec);
  return spec;
}

void complete(FabricSpec& spec) {
  LidSource lids(spec);
  for (std::uint32_t h = 0; h < spec.hosts.size(); ++h) complete_host(spec.hosts[h], h, lids);
}

}  // namespace softnic
