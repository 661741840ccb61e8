// SPDX-License-Identifier: Apache-2.0
//
// The limits of this machine without a NIC, with which softnic_bench compares its results.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/support/samples.h"
#include "common/base/fd.h"

namespace beeline::bench {

// One cache line of memory that two processes share.
struct alignas(64) CacheLine {
  std::atomic<uint64_t> word{0};

  static CacheLine& make_shared();  // for this process and its children
};

// One side writes to the line and waits for the answer; the other calls return_cache_line. Adds the
// time of one pass in one direction.
void pass_cache_line(CacheLine& line, Samples& one_way_ns);
void return_cache_line(CacheLine& line);

// Copies to the memory of another process through the kernel.
class ForeignMemory {
 public:
  explicit ForeignMemory(pid_t owner);

  void write_word(uint64_t address, uint64_t value);                     // pwrite, 8 bytes
  void write_block(uint64_t address, std::span<const std::byte> block);  // process_vm_writev

 private:
  pid_t owner_;
  UniqueFd file_;  // /proc/PID/mem
};

}  // namespace beeline::bench
