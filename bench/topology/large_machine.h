// SPDX-License-Identifier: Apache-2.0
//
// Machines that are larger than any real one.
#pragma once

#include <cstddef>

#include "topology/graph.h"

namespace beeline::bench {

inline constexpr std::size_t kNumaNodes = 8;
inline constexpr std::size_t kGpus = 512;
inline constexpr std::size_t kNics = 512;

// Four host bridges a NUMA node, four root ports a host bridge, and below each a switch with four
// GPUs and four NICs.
topology::GraphParts switched_machine();

// The same devices below a single switch, so that all GPUs have the same choice.
topology::GraphParts tied_machine();

}  // namespace beeline::bench
