// SPDX-License-Identifier: Apache-2.0
//
// Two machines that should be alike, held against each other.
#pragma once

#include <cstddef>
#include <string>

#include "topology/graph.h"

namespace beeline::topology {

struct Difference {
  // A line for each thing that differs, what holds for many devices once: "mlx5_3: link Gen5 x16 in
  // A, Gen4 x8 in B". Empty: the same.
  std::string text = {};
  // Facts that only one of both knows, as files of different kinds do. They are no difference.
  std::size_t not_compared = 0;
};

// Devices are the same where their addresses are; those without PCI where their names are. What
// differs from host to host by nature (the host's name, a GPU's UUID) is not compared, nor is the
// rate of a link that saves power.
Difference difference_of(const Graph& a, const Graph& b);

}  // namespace beeline::topology
