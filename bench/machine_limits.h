// SPDX-License-Identifier: Apache-2.0
//
// What this machine can do without any NIC: the yardsticks that softnic_bench holds its numbers to.
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

  static CacheLine& make_shared();  // for this process and those it forks
};

// One side passes the line and waits for it to come back; the other calls return_cache_line. Adds
// the time of one pass, one way.
void pass_cache_line(CacheLine& line, Samples& one_way_ns);
void return_cache_line(CacheLine& line);

// The kernel's ways into the memory of another process.
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
