// SPDX-License-Identifier: Apache-2.0
//
// All problems of a machine, in one list: each finding names a device, the cause and the fix. The
// text, the JSON, the exit status of --check and the warnings of the plugin are made from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/finding.h"
#include "topology/graph.h"

namespace beeline::topology {

enum class FindingKind : std::uint8_t {
  kSlowLink,     // a PCIe link is slower than both ends could be, or than the devices below it need
  kFarNic,       // NCCL's NICs for this GPU are too far away for GPUDirect by default
  kSlowNearNic,  // the nearest NIC is not used, because others farther away are faster
  kHiddenTree,   // no GPU and no NIC is below a bridge, as in many virtual machines
  kPortDown,
  kOddSpeed,  // the speed of a port is higher than that of any real port
};
const char* to_string(FindingKind kind) noexcept;  // "slow link"

using beeline::Severity;

// About nodes of a graph. Those that the plugin reports become a beeline::Finding, which has names.
struct Finding {
  FindingKind kind = FindingKind::kSlowLink;
  Severity severity = Severity::kWarning;
  NodeIndex device = kNoNode;  // kNoNode: the whole machine
  std::vector<NodeIndex> others =
      {};                  // other nodes that it concerns: the GPU's NICs, a card's ports
  std::string cause = {};  // continues a line that begins with the device's name and a colon
  std::string fix = {};    // what to do
};

struct FindingOptions {
  // The NICs in use; by default all of the graph.
  std::optional<std::vector<NodeIndex>> nics = {};
};

// Warnings first; within these by kind, then in the order of the graph.
std::vector<Finding> findings(const Graph& graph, const FindingOptions& options = {});

// "Gen4 x8, could be Gen5 x16: reseat the card, look at the riser and the BIOS".
std::string describe(const Finding& finding);

// Whether there is a warning among them.
bool has_warning(const std::vector<Finding>& findings) noexcept;

}  // namespace beeline::topology
