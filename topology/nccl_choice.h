// SPDX-License-Identifier: Apache-2.0
//
// Computes NCCL's own choice for a machine: the NICs that each GPU gets without any setting. It
// uses NCCL's numbers for links and processors, which are less exact than the real ones. The rules
// are those of one version, which the output names.
//
// NCCL takes the NICs with the highest bandwidth from GPU to wire, and among those the nearest.
// GPUs share them by their numbers. A NIC that is near to another GPU only is reached through that
// GPU, if NVLink connects the two GPUs (PXN).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

inline constexpr const char* kNcclVersion = "NCCL 2.30";

// NCCL's own words, nearest first.
enum class NcclPathType : std::uint8_t {
  kPix,  // below the same PCIe switch
  kPxb,  // through several switches
  kP2c,  // over C2C to the processor, and from there to the NIC
  kPxn,  // over NVLink to a GPU that is near to the NIC
  kPhb,  // through the processor of one NUMA node
  kSys,  // through the processors of two
};
const char* to_string(NcclPathType path) noexcept;  // "PIX"

struct NcclChoice {
  NodeIndex gpu = kNoNode;
  std::vector<NodeIndex> nics = {};    // those it uses, by channel; empty: there is no NIC
  std::vector<NodeIndex> equals = {};  // all NICs that are equally good for NCCL, in its order
  NcclPathType path_type = NcclPathType::kSys;
  NodeIndex through = kNoNode;      // kPxn: the GPU whose NICs these are; of the first NIC
  double gigabytes_per_second = 0;  // from GPU to wire, by NCCL's numbers
  bool gpu_direct = false;          // near enough for GPUDirect by NCCL's default
};

struct NcclOptions {
  // The NICs that NCCL is offered; by default all of the graph that are not known to be down.
  std::optional<std::vector<NodeIndex>> nics = {};
};

// Returns one choice for each GPU, in the order of Graph::gpus().
std::vector<NcclChoice> nccl_choices(const Graph& graph, const NcclOptions& options = {});

}  // namespace beeline::topology
