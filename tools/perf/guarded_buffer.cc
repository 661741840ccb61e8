// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/guarded_buffer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace beeline::perf {
namespace {

constexpr std::uint8_t kGuard = 0x5C;

size_t whole_pages(size_t size) { return (size + host_page() - 1) / host_page() * host_page(); }

std::uint8_t* allocate(size_t size) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, host_page(), size) != 0) throw std::bad_alloc();
  std::memset(memory, kGuard, size);
  return static_cast<std::uint8_t*>(memory);
}

}  // namespace

size_t host_page() noexcept {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return page;
}

void GuardedBuffer::Free::operator()(std::uint8_t* memory) const noexcept { std::free(memory); }

GuardedBuffer::GuardedBuffer(size_t size)
    : size_(size),
      total_(host_page() + whole_pages(size) + host_page()),
      memory_(allocate(total_)) {
  poison();
}

std::uint8_t* GuardedBuffer::data() const noexcept { return memory_.get() + host_page(); }

void GuardedBuffer::poison() const noexcept { std::memset(data(), kPoison, size_); }

void GuardedBuffer::keep() {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<std::uint8_t, Free>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(memory_));
}

size_t GuardedBuffer::broken_guards() const noexcept {
  const auto changed = [](std::uint8_t byte) { return byte != kGuard; };
  const auto before = std::count_if(memory_.get(), data(), changed);
  const auto after = std::count_if(data() + size_, memory_.get() + total_, changed);
  return static_cast<size_t>(before + after);
}

}  // namespace beeline::perf
