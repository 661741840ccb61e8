// SPDX-License-Identifier: Apache-2.0
// What a fabric file says: hosts, their RDMA devices and GPUs, and where each sits in the PCI tree.
// Plain data: the TOML reader makes it, the fabric and the sysfs writer consume it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace softnic {

enum class LinkLayer : std::uint8_t { kEthernet, kInfiniBand };
enum class GidKind : std::uint8_t { kIb = 0, kRoceV1 = 1, kRoceV2 = 2 };  // values of ibv_gid_type

struct GidSpec {
  std::uint32_t index = 0;  // tables may be sparse
  std::array<std::uint8_t, 16> raw{};
  GidKind kind = GidKind::kRoceV2;
};

struct PortSpec {
  std::uint32_t gbps = 100;        // what the port reports: 1, 10, 25, 40, 50, 100, 200, 400, 800
  std::uint32_t mtu = 4096;        // active MTU in bytes: 256, 512, 1024, 2048, 4096
  std::uint64_t rate_bytes_s = 0;  // what it delivers; 0: as fast as memory copies
  std::uint64_t latency_ns = 0;    // added to every message, one way
  std::uint16_t lid = 0;           // InfiniBand only; 0: assigned by position
  bool up = true;
  std::string network;  // ports talk to ports of the same network only; "" is one of them
  std::string netdev;   // RoCE: name of the Ethernet interface shown in sysfs
  std::uint32_t gid_table_len = 16;
  std::vector<GidSpec> gids;  // empty: assigned by position
};

struct DeviceSpec {
  std::string name;
  LinkLayer link_layer = LinkLayer::kEthernet;
  std::string pci;  // "pci0000:40/0000:40:01.1/0000:41:00.0": root, bridges, the function itself
  int numa = 0;
  std::uint64_t guid = 0;       // 0: assigned by position; port N has port_guid(guid, N)
  std::vector<PortSpec> ports;  // 1 or 2
};

struct GpuSpec {
  std::string name;
  std::string pci;
  int numa = 0;
  std::uint64_t bar1 = std::uint64_t{128} << 30;  // bytes of memory that NICs can reach at a time
};

struct HostSpec {
  std::string name;
  std::uint32_t numa_nodes = 1;
  std::vector<DeviceSpec> devices;
  std::vector<GpuSpec> gpus;
};

// What a NIC may do and ours does on request (see HazardRecord).
struct HazardSpec {
  bool scatter = false;
  bool hide = false;
  std::uint64_t bunch_ns = 0;
};

struct FabricSpec {
  double clock_scale = 1.0;  // 0.1: timeouts and RNR waits end ten times sooner
  std::uint64_t seed = 1;
  HazardSpec hazards;
  std::vector<HostSpec> hosts;
};

// Hosts h0 and h1, each with RoCE devices softnic0 and softnic1, complete.
FabricSpec default_fabric();
// The same with so many hosts, and so many devices in each.
FabricSpec even_fabric(std::uint32_t hosts, std::uint32_t devices);

// Fills in what the file left open (GUIDs, GIDs, LIDs, netdev names, PCI places), by position.
// What is there already stays, so a second call changes nothing.
void complete(FabricSpec& spec);

// "fe80:0000:0000:0000:0050:00ff:fe00:0001", as sysfs prints a GID.
std::string gid_text(const std::array<std::uint8_t, 16>& raw);

std::uint64_t port_guid(std::uint64_t device_guid, std::uint32_t port_number);

// The Ethernet address behind a port; the link-local GIDs are made from it.
std::array<std::uint8_t, 6> port_mac(std::uint64_t device_guid, std::uint32_t port_number);

}  // namespace softnic
