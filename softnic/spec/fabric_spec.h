// SPDX-License-Identifier: Apache-2.0
// The contents of a fabric file as plain structures: hosts, their RDMA devices and GPUs, and the
// place of each in the PCI tree. spec_toml.h fills them in; the shared segment and the sysfs trees
// are built from them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace softnic {

enum class LinkLayer : std::uint8_t { kEthernet, kInfiniBand };
enum class GidKind : std::uint8_t { kIb = 0, kRoceV1 = 1, kRoceV2 = 2 };  // values of ibv_gid_type

struct GidSpec {
  std::uint32_t index = 0;  // in the GID table, which may have empty entries
  std::array<std::uint8_t, 16> raw{};
  GidKind kind = GidKind::kRoceV2;
};

inline constexpr std::uint16_t kMaxUnicastLid = 0xbfff;  // IBA 4.1.3: higher LIDs are multicast

struct PortSpec {
  std::uint32_t gbps = 100;        // what the port reports: 1, 10, 25, 40, 50, 100, 200, 400, 800
  std::uint32_t mtu = 4096;        // active MTU in bytes: 256, 512, 1024, 2048, 4096
  std::uint64_t rate_bytes_s = 0;  // the throughput it allows; 0: unlimited
  std::uint64_t latency_ns = 0;    // added to every message, one way
  std::uint16_t lid = 0;           // InfiniBand only; 0: complete() assigns one
  bool up = true;
  std::string network;  // a port reaches only ports of the same network; "" is also a network
  std::string netdev;   // RoCE: name of the Ethernet interface shown in sysfs
  std::uint32_t gid_table_len = 16;
  std::vector<GidSpec> gids;  // empty: complete() assigns them
};

struct DeviceSpec {
  std::string name;
  LinkLayer link_layer = LinkLayer::kEthernet;
  std::string pci;  // "pci0000:40/0000:40:01.1/0000:41:00.0": root, bridges, the PCI function
  int numa = 0;
  std::uint64_t guid = 0;       // 0: complete() assigns one; port N has port_guid(guid, N)
  std::vector<PortSpec> ports;  // 1 or 2
};

struct GpuSpec {
  std::string name;
  std::string pci;
  int numa = 0;
  std::uint64_t bar1 = std::uint64_t{128} << 30;  // size of BAR1, through which NICs reach memory
};

struct HostSpec {
  std::string name;
  std::uint32_t numa_nodes = 1;
  std::vector<DeviceSpec> devices;
  std::vector<GpuSpec> gpus;
};

// Unusual but permitted behavior that a fabric can switch on; HazardRecord describes each.
struct HazardSpec {
  bool scatter = false;
  bool hide = false;
  std::uint64_t bunch_ns = 0;
  std::uint64_t command_ns = 0;
};

struct FabricSpec {
  double clock_scale = 1.0;  // multiplies timeouts and RNR waits; 0.1 makes them ten times shorter
  std::uint64_t seed = 1;
  HazardSpec hazards;
  std::vector<HostSpec> hosts;
};

// Hosts h0 and h1, each with RoCE devices softnic0 and softnic1. The spec is complete.
FabricSpec default_fabric();
// The same with the given number of hosts, and of devices in each host.
FabricSpec even_fabric(std::uint32_t hosts, std::uint32_t devices);

// Assigns GUIDs, GIDs, LIDs, netdev names and PCI paths where the file gives none. They depend only
// on the positions of hosts and devices in the file. Existing values stay, so a second call changes
// nothing.
void complete(FabricSpec& spec);

// "fe80:0000:0000:0000:0050:00ff:fe00:0001", as sysfs prints a GID.
std::string gid_text(const std::array<std::uint8_t, 16>& raw);

std::uint64_t port_guid(std::uint64_t device_guid, std::uint32_t port_number);

// The Ethernet address of a port, from which its link-local GIDs are derived.
std::array<std::uint8_t, 6> port_mac(std::uint64_t device_guid, std::uint32_t port_number);

}  // namespace softnic
