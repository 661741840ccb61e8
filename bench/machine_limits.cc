// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_limits.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <new>
#include <string>

#include "bench/support/ranks.h"
#include "tests/support/must.h"

namespace beeline::bench {
namespace {

// A single pass is too short to be timed.
constexpr uint64_t kPassesABatch = 16;
constexpr uint64_t kBatches = 200;

void wait_for_word(const CacheLine& line, uint64_t value) {
  Spin spin;
  while (line.word.load(std::memory_order_acquire) != value) spin();
}

}  // namespace

CacheLine& CacheLine::make_shared() {
  void* const page =
      mmap(nullptr, sizeof(CacheLine), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BL_MUST(page != MAP_FAILED);
  return *new (page) CacheLine;
}

void pass_cache_line(CacheLine& line, Samples& one_way_ns) {
  uint64_t word = line.word.load();
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    const double ns = timed_ns([&] {
      for (uint64_t pass = 0; pass < kPassesABatch; ++pass, word += 2) {
        line.word.store(word + 1, std::memory_order_release);
        wait_for_word(line, word + 2);
      }
    });
    one_way_ns.add(ns / static_cast<double>(2 * kPassesABatch));
  }
}

void return_cache_line(CacheLine& line) {
  const uint64_t first = line.word.load() & ~uint64_t{1};  // the other side may already have begun
  for (uint64_t pass = 0; pass < kBatches * kPassesABatch; ++pass) {
    wait_for_word(line, first + 2 * pass + 1);
    line.word.store(first + 2 * pass + 2, std::memory_order_release);
  }
}

ForeignMemory::ForeignMemory(pid_t owner)
    : owner_(owner),
      file_(open(("/proc/" + std::to_string(owner) + "/mem").c_str(), O_RDWR | O_CLOEXEC)) {
  BL_MUST(file_);
}

void ForeignMemory::write_word(uint64_t address, uint64_t value) {
  BL_MUST(pwrite(file_.get(), &value, sizeof(value), static_cast<off_t>(address)) == sizeof(value));
}

void ForeignMemory::write_block(uint64_t address, std::span<const std::byte> block) {
  const iovec ours = {const_cast<std::byte*>(block.data()), block.size()};
  const iovec theirs = {reinterpret_cast<void*>(address), block.size()};
  BL_MUST(process_vm_writev(owner_, &ours, 1, &theirs, 1, 0) == static_cast<ssize_t>(block.size()));
}

}  // namespace beeline::bench
