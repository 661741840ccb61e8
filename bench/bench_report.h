// SPDX-License-Identifier: Apache-2.0
//
// The results of softnic_bench, and the text that it prints.
#pragma once

#include <cstddef>

#include "bench/support/samples.h"

namespace beeline::bench {

inline constexpr size_t kBlockBytes = 1 << 20;

// Nanoseconds.
struct Times {
  Samples ping;          // half a round trip
  Samples line;          // one pass
  Samples kernel_word;   // one pwrite
  Samples block;         // one block of the RDMA stream
  Samples copy;          // one block by memcpy
  Samples kernel_block;  // one block by process_vm_writev
  Samples small;         // one small write of a stream
};

void print_report(Times& times);

}  // namespace beeline::bench
