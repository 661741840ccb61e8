// SPDX-License-Identifier: Apache-2.0
//
// Compares two machines that should be alike.
#pragma once

#include <cstddef>
#include <string>

#include "topology/graph.h"

namespace beeline::topology {

struct Difference {
  // A line for each difference, once for all devices that have it: "mlx5_3: link Gen5 x16 in A,
  // Gen4 x8 in B". Empty: the machines are the same.
  std::string text = {};
  // The number of facts that only one of the two machines has, as with files of different kinds.
  // They are not reported as differences.
  std::size_t not_compared = 0;
};

// Devices are matched by their PCI addresses, or by their names if they have none. Facts that
// always differ between hosts (the host's name, a GPU's UUID) are not compared, nor is the rate of
// a link that saves power.
Difference difference_of(const Graph& a, const Graph& b);

std::string to_json(const Difference& difference);

}  // namespace beeline::topology
