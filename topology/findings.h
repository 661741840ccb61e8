// SPDX-License-Identifier: Apache-2.0
//
// Everything that is wrong with a machine, in one list: each entry names a device, the cause and
// what to do. The text, the JSON, the exit status of a check and the plugin's warnings are all made
// of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

enum class FindingKind : std::uint8_t {
  kSlowLink,     // a PCIe link carries less than both ends could, or than what hangs below it needs
  kFarNic,       // what NCCL takes for this GPU is behind a processor: no GPUDirect by default
  kSlowNearNic,  // the nearest NIC is passed over, since others farther away are faster
  kHiddenTree,   // no GPU and no NIC is below a bridge, as in virtual machines
  kPortDown,
  kOddSpeed,  // a port's speed that no port has
};
const char* to_string(FindingKind kind) noexcept;  // "slow link"

enum class Severity : std::uint8_t {
  kNote,     // worth knowing; may be meant so
  kWarning,  // data moves slower than this machine could
};
const char* to_string(Severity severity) noexcept;  // "warning"

struct Finding {
  FindingKind kind = FindingKind::kSlowLink;
  Severity severity = Severity::kWarning;
  NodeIndex device = kNoNode;          // kNoNode: the machine
  std::vector<NodeIndex> others = {};  // that it is about as well: the GPU's NICs, a card's ports
  std::string cause = {};  // a sentence's part that goes behind the device's name and a colon
  std::string fix = {};    // what to do
};

struct FindingOptions {
  // The NICs in use; none said: all of the graph.
  std::optional<std::vector<NodeIndex>> nics = {};
};

// Warnings first; within these by kind, then in the order of the graph.
std::vector<Finding> findings(const Graph& graph, const FindingOptions& options = {});

// "Gen4 x8, could be Gen5 x16: reseat the card, look at the riser and the BIOS".
std::string describe(const Finding& finding);

// Is there one that is no mere note?
bool has_warning(const std::vector<Finding>& findings) noexcept;

}  // namespace beeline::topology
