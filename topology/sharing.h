// SPDX-License-Identifier: Apache-2.0
//
// Distributes NICs among GPUs, given the NICs that each GPU may have. Works on numbers only.
#pragma once

#include <cstddef>
#include <vector>

namespace beeline::topology {

struct Claims {
  // By GPU: the NICs that it may have, in order. Usually the sets of two GPUs are equal, one within
  // the other, or disjoint; links of different speeds can cause other cases.
  std::vector<std::vector<std::size_t>> choices = {};
  // By NIC: the first NIC on its adapter.
  std::vector<std::size_t> adapters = {};
  std::size_t max_per_gpu = 0;  // 0: no limit
};

// By GPU: the NICs that it gets, in order; at least one if it may have any. In the usual case
// above, of two NICs that a GPU may have, the one that it gets serves at most one GPU more than the
// other.
std::vector<std::vector<std::size_t>> share_out(const Claims& claims);

}  // namespace beeline::topology
