// SPDX-License-Identifier: Apache-2.0
//
// A node of the graph: a package, a bridge, a GPU, a NIC. It is plain data without pointers. A
// reader sets what its source contains, and leaves the rest at "unknown".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "topology/pci_address.h"
#include "topology/pcie_link.h"

namespace beeline::topology {

using NodeIndex = std::size_t;
inline constexpr NodeIndex kNoNode = std::numeric_limits<NodeIndex>::max();

// Far above the largest number of a package or a NUMA node in any machine.
inline constexpr int kMaxNumber = 1 << 20;

// A PCI domain has 256 buses, and each bridge creates one.
inline constexpr int kMaxBridgesInARow = 256;

// A parent comes before its children in this order; only a bridge may be below a node of its kind.
enum class NodeKind : std::uint8_t {
  kMachine,     // the root; exactly one
  kPackage,     // a processor's socket
  kNumaNode,    // memory, and the processors near it
  kHostBridge,  // a PCI root bus ("pci0000:17"): where PCI meets the processor
  kBridge,      // a root port, a port of a PCIe switch, or any other PCI-to-PCI bridge
  kDevice,  // a PCI function, or a device without PCI (a soft RDMA device on a virtual interface)
};

// The kind of a bridge. Sources rarely contain it. Graph::make derives it from the position in the
// tree, since ports alternate: root port, upstream port, downstream port, upstream port of the next
// switch, ...
enum class BridgePort : std::uint8_t {
  kUnknown,
  kRoot,        // the processor's end of a link
  kUpstream,    // a switch's end towards the processor; represents the switch
  kDownstream,  // a switch's end towards a device or another switch
  kSwitch,      // all ports of a switch in one node, as NCCL's XML draws them
};

enum class DeviceRole : std::uint8_t {
  kOther,
  kGpu,
  kRdmaNic,  // can carry RDMA; a plain Ethernet NIC is kOther
};

// The kind of a name that the operating system has for a device.
enum class OsKind : std::uint8_t {
  kRdma,       // mlx5_0
  kInterface,  // eth0, ib0
  kGpu,        // nvidia0, cuda0, rsmi0
  kDisplay,    // card0, renderD128
  kOther,      // nvme0
};
struct OsDevice {
  OsKind kind = OsKind::kOther;
  std::string name;

  bool operator==(const OsDevice&) const = default;
};

// Twice the speed of the fastest port on the market. A higher speed is a mistake in the
// description.
inline constexpr std::uint32_t kMaxPortMbps = 3'200'000;

enum class PortState : std::uint8_t {
  kUnknown,
  kActive,
  kDown,  // not active: no cable, no subnet manager, switched off
};

enum class LinkLayer : std::uint8_t { kUnknown, kInfiniBand, kEthernet };

// A network port of an RDMA device.
struct NicPort {
  std::uint32_t number = 1;      // of the RDMA device, from 1
  std::uint32_t speed_mbps = 0;  // 0: unknown
  PortState state = PortState::kUnknown;
  LinkLayer link_layer = LinkLayer::kUnknown;

  bool operator==(const NicPort&) const = default;
};

// A link of a GPU, other than PCIe, to another GPU, to a switch of such links or to the processor.
enum class GpuLinkKind : std::uint8_t { kNvLink, kXgmi, kC2c };
struct GpuLink {
  GpuLinkKind kind = GpuLinkKind::kNvLink;
  std::string target = {};         // a PCI address, as the source writes it; C2C: "", the processor
  std::uint32_t target_class = 0;  // PCI class of the target; 0: unknown
  std::uint32_t count = 1;         // links side by side
  std::uint32_t mbytes_per_second = 0;  // of each one, C2C alone; 0: unknown

  bool operator==(const GpuLink&) const = default;
};

// The facts that only a GPU has.
struct GpuFacts {
  int number = -1;        // CUDA's or HIP's number of the device; -1: unknown
  int sm = -1;            // compute capability, 90 for 9.0; -1: unknown
  std::string gcn = {};   // AMD's name of the architecture, "gfx942"
  std::string arch = {};  // RCCL's number of it, as written
  std::vector<GpuLink> links = {};

  bool operator==(const GpuFacts&) const = default;
};

// A processor as reported by cpuid. NCCL derives the bandwidth between processors from it.
struct CpuFacts {
  std::string arch = {};    // "x86_64", "arm64", "ppc64"; "": unknown
  std::string vendor = {};  // "GenuineIntel", "AuthenticAMD"
  int family = -1;
  int model = -1;

  bool operator==(const CpuFacts&) const = default;
};

struct Node {
  NodeKind kind = NodeKind::kDevice;
  NodeIndex parent = kNoNode;  // kNoNode for the machine only
  std::string name = {};  // for output: "AMD EPYC 9654", "NVIDIA H100 80GB HBM3", a host's name
  int number = -1;        // of a package or a NUMA node, the operating system's; -1: none
  int numa = -1;          // nearest NUMA node; -1: unknown
  std::string cpus = {};  // processors near it, "0-31,64-95"; empty: unknown

  // PCI. A host bridge has the address of device 0 on its root bus.
  std::optional<PciAddress> pci = {};
  std::uint32_t pci_class = 0;  // 24 bits: class, subclass, interface: 0x020700; 0: unknown
  std::uint16_t vendor = 0;     // 0: unknown
  std::uint16_t device = 0;
  std::uint16_t subsystem_vendor = 0;
  std::uint16_t subsystem_device = 0;
  BridgePort port = BridgePort::kUnknown;

  // Of a device, an upstream port or a kSwitch: the link above it. Of a root port or a downstream
  // port: the link below it. So both ends of a link may describe it; `link_max` is the maximum of
  // that end alone.
  PcieLink link_now = {};
  PcieLink link_max = {};

  // Of a device.
  DeviceRole role = DeviceRole::kOther;
  NodeIndex physical_function =
      kNoNode;  // of a virtual function (SR-IOV): the function it belongs to
  std::vector<OsDevice> os_devices = {};
  std::vector<NicPort> nic_ports = {};  // of an RDMA NIC; empty: unknown, treated as one port
  // An RDMA NIC's place among those of a file for NCCL_TOPO_FILE, in whose order NCCL gives
  // equally good NICs to GPUs; -1: there is no such file.
  int place_in_file = -1;
  std::string bond = {};  // the bonding interface it is a member of; "": none
  std::string uuid = {};  // of a GPU; "": unknown
  GpuFacts gpu = {};

  CpuFacts cpu = {};  // of a package or a NUMA node

  bool operator==(const Node&) const = default;
};

const char* to_string(NodeKind kind) noexcept;
const char* to_string(DeviceRole role) noexcept;
const char* to_string(LinkLayer layer) noexcept;  // "InfiniBand"

// The first name of that kind; "" when there is none.
const std::string& os_name(const Node& node, OsKind kind) noexcept;

// The name of a node in messages: "mlx5_0", "GPU 0000:3b:00.0", "NUMA node 1", "bridge
// 0000:17:01.0", "machine". Unique within a graph where names and addresses are.
std::string label(const Node& node);

}  // namespace beeline::topology
