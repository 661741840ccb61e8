// SPDX-License-Identifier: Apache-2.0
//
// The summary of a machine in one sentence.
#pragma once

#include <string>

#include "topology/assignment.h"

namespace beeline::topology {

// "8 of 8 GPUs have a NIC of their own; GPUDirect is possible without NCCL_NET_GDR_LEVEL; no link
// is slow". Without a period or a line break.
std::string verdict_text(const Graph& graph, const Assignment& assignment);

// Counts links_in_use(). A link whose possible speed is unknown cannot be judged.
struct LinkCount {
  std::size_t all = 0;
  std::size_t slow = 0;
  std::size_t unknown = 0;

  bool can_be_judged() const noexcept { return all > unknown; }
};
LinkCount count_links(const Graph& graph);

}  // namespace beeline::topology
