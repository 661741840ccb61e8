// SPDX-License-Identifier: Apache-2.0
//
// Sharing NICs out, once it is known which ones each GPU may have: numbers only.
#pragma once

#include <cstddef>
#include <vector>

namespace beeline::topology {

struct Claims {
  // By GPU: its NICs, in order. Mostly two GPUs have the same ones, or one has some of the other's,
  // or none in common; links of different speeds can make it otherwise.
  std::vector<std::vector<std::size_t>> choices = {};
  // By NIC: the first NIC on its adapter.
  std::vector<std::size_t> adapters = {};
  std::size_t max_per_gpu = 0;  // 0: no limit
};

// By GPU: what it gets, in order; one at least where it has a choice. Of two NICs that a GPU may
// have, the one it gets serves at most one GPU more than the other, where choices are as said
// above.
std::vector<std::vector<std::size_t>> share_out(const Claims& claims);

}  // namespace beeline::topology
