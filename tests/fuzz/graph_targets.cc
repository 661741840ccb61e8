// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary nodes for Graph::make, as from a reader that checks nothing. Each node is a fixed
// number of bytes. If Graph::make accepts them, the graph can be judged, assigned and drawn.
#include <algorithm>
#include <array>

#include "tests/fuzz/machine_judge.h"
#include "tests/fuzz/topology_targets.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::topology;

constexpr std::size_t kNodeBytes = 17;
constexpr std::size_t kMostNodes = 96;  // the time grows with its square
constexpr std::uint8_t kNone = 255;
constexpr std::uint32_t kUnit = 1'000;  // of rates and speeds

class Taker {
 public:
  explicit Taker(ByteView bytes) : bytes_(bytes) {}

  std::uint8_t byte() { return std::to_integer<std::uint8_t>(bytes_[at_++]); }
  int small_int() { return static_cast<std::int8_t>(byte()); }
  NodeIndex index() {
    const std::uint8_t index = byte();
    return index == kNone ? kNoNode : index;
  }
  template <class Enum>
  Enum choice(unsigned count) {
    return static_cast<Enum>(byte() % count);
  }
  PcieLink link() {
    const std::uint32_t rate = byte() * kUnit;
    return {.mega_transfers = rate, .lanes = byte()};
  }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
};

Node node_of(ByteView bytes) {
  Taker take(bytes);
  Node node{.kind = take.choice<NodeKind>(6), .parent = take.index()};
  node.number = take.small_int();
  node.numa = take.small_int();
  const std::uint8_t bus = take.byte();
  const std::uint8_t device = take.byte();
  if (bus != kNone) {
    node.pci = PciAddress{.bus = bus,
                          .device = static_cast<std::uint8_t>(device >> 3),
                          .function = static_cast<std::uint8_t>(device & 7)};
  }
  node.role = take.choice<DeviceRole>(3);
  node.port = take.choice<BridgePort>(5);
  node.physical_function = take.index();
  node.link_now = take.link();
  node.link_max = take.link();
  const OsKind name_kind = take.choice<OsKind>(5);
  const std::uint8_t name = take.byte();
  if (name != 0) node.os_devices = {{name_kind, std::string(1, static_cast<char>(name))}};
  const std::uint32_t speed = take.byte() * kUnit;
  if (speed != 0) node.nic_ports = {{.number = 1, .speed_mbps = speed}};
  const std::uint8_t bond = take.byte();
  if (bond != 0) node.bond = std::string(1, static_cast<char>(bond));
  node.cpus = node.number < 0 ? "" : std::to_string(node.number);
  return node;
}

bool take_graph(ByteView bytes) {
  if (bytes.size() / kNodeBytes > kMostNodes) return false;
  GraphParts parts{.source = "bytes"};
  for (; bytes.size() >= kNodeBytes; bytes = bytes.subspan(kNodeBytes)) {
    parts.nodes.push_back(node_of(bytes.first(kNodeBytes)));
  }
  const auto graph = Graph::make(std::move(parts));
  if (!graph) {
    hold(!graph.error().text.empty(), "an error says something");
    return false;
  }
  hold_sound(*graph);
  return true;
}

// The bytes of a small graph. Each device has a name of one letter.
void append(Bytes& bytes, const Node& node, std::uint8_t letter) {
  const auto index = [](NodeIndex node_index) {
    return node_index == kNoNode ? kNone : static_cast<std::uint8_t>(node_index);
  };
  const auto rate = [](std::uint32_t mega) { return static_cast<std::uint8_t>(mega / kUnit); };
  const bool has_name = !node.os_devices.empty();
  const std::array<std::uint8_t, kNodeBytes> values = {
      static_cast<std::uint8_t>(node.kind),
      index(node.parent),
      static_cast<std::uint8_t>(node.number),
      static_cast<std::uint8_t>(node.numa),
      node.pci ? node.pci->bus : kNone,
      static_cast<std::uint8_t>(node.pci ? node.pci->device << 3 | node.pci->function : 0),
      static_cast<std::uint8_t>(node.role),
      static_cast<std::uint8_t>(node.port),
      index(node.physical_function),
      rate(node.link_now.mega_transfers),
      static_cast<std::uint8_t>(node.link_now.lanes),
      rate(node.link_max.mega_transfers),
      static_cast<std::uint8_t>(node.link_max.lanes),
      static_cast<std::uint8_t>(has_name ? node.os_devices[0].kind : OsKind::kOther),
      has_name ? letter : std::uint8_t{0},
      rate(node.nic_ports.empty() ? 0 : std::min(node.nic_ports[0].speed_mbps, 200 * kUnit)),
      static_cast<std::uint8_t>(node.bond.empty() ? 0 : 'b'),
  };
  for (const std::uint8_t value : values) bytes.push_back(std::byte{value});
}

std::vector<Bytes> graph_seeds() {
  std::vector<Bytes> seeds;
  for (const std::string& machine :
       {machines::no_io(), machines::virtual_functions(), machines::bonded(),
        machines::missing_numa(), machines::no_link_width(), machines::one_root_port(),
        machines::far_socket(), machines::dual_port(), machines::tied_in_pairs()}) {
    const GraphParts parts = read_machine(machine);
    Bytes& seed = seeds.emplace_back();
    std::uint8_t letter = 'A';
    for (const Node& node : parts.nodes) append(seed, node, letter++);
  }
  return seeds;
}

constexpr std::array<Target, 1> kGraphTargets = {{{"graph", take_graph, graph_seeds}}};

}  // namespace

std::span<const Target> graph_targets() { return kGraphTargets; }

}  // namespace beeline::fuzz
