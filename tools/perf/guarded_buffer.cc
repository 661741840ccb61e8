// SPDX-License-Identifier: Apache-2.0
//
// See guarded_buffer.h.
#include "tools/perf/guarded_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace beeline::perf {
namespace {

constexpr size_t kPage = 4096;
constexpr std::uint8_t kGuard = 0x5C;

size_t whole_pages(size_t size) { return (size + kPage - 1) / kPage * kPage; }

std::uint8_t* allocate(size_t size) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, kPage, size) != 0) throw std::bad_alloc();
  std::memset(memory, kGuard, size);
  return static_cast<std::uint8_t*>(memory);
}

}  // namespace

void GuardedBuffer::Free::operator()(std::uint8_t* memory) const noexcept { std::free(memory); }

GuardedBuffer::GuardedBuffer(size_t size)
    : size_(size), total_(kPage + whole_pages(size) + kPage), memory_(allocate(total_)) {
  poison();
}

std::uint8_t* GuardedBuffer::data() const noexcept { return memory_.get() + kPage; }

void GuardedBuffer::poison() const noexcept { std::memset(data(), kPoison, size_); }

size_t GuardedBuffer::broken_guards() const noexcept {
  const auto changed = [](std::uint8_t byte) { return byte != kGuard; };
  const auto before = std::count_if(memory_.get(), data(), changed);
  const auto after = std::count_if(data() + size_, memory_.get() + total_, changed);
  return static_cast<size_t>(before + after);
}

}  // namespace beeline::perf
