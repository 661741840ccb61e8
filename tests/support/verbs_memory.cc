// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verbs_memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "tests/support/must.h"

namespace beeline::test {
namespace {

constexpr uint8_t kGuardByte = 0xA5;

// Changes within a byte, across pages and with the seed; never periodic in a power of two.
uint8_t pattern_byte(uint32_t seed, size_t place) {
  const uint64_t mixed = (place + 1) * 0x9E3779B97F4A7C15u + seed * 0xC2B2AE3D27D4EB4Fu;
  return static_cast<uint8_t>(mixed >> 56);
}

}  // namespace

void fill_pattern(std::span<uint8_t> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_byte(seed, i);
}

size_t first_difference(std::span<const uint8_t> bytes, uint32_t seed, size_t from) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern_byte(seed, from + i)) return i;
  }
  return bytes.size();
}

Buffer::Buffer(ibv_pd* pd, size_t size, int access)
    : storage_(size + 2 * kGuard, kGuardByte), size_(size) {
  std::fill_n(data(), size, uint8_t{0});
  mr_.reset(ibv_reg_mr(pd, data(), size, access));
  if (mr_ == nullptr) throw MustError("ibv_reg_mr: errno " + std::to_string(errno));
}

Region Buffer::part(size_t offset, size_t length) {
  return {reinterpret_cast<uint64_t>(data() + offset), static_cast<uint32_t>(length), mr_->lkey,
          mr_->rkey};
}

bool Buffer::is_zero(size_t offset, size_t length) const {
  const auto begin = storage_.begin() + static_cast<ptrdiff_t>(kGuard + offset);
  return std::all_of(begin, begin + static_cast<ptrdiff_t>(length),
                     [](uint8_t byte) { return byte == 0; });
}

bool Buffer::guards_intact() const {
  const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
  return std::all_of(storage_.begin(), storage_.begin() + kGuard, is_guard) &&
         std::all_of(storage_.end() - kGuard, storage_.end(), is_guard);
}

uint8_t Buffer::peek(size_t offset) {
  return std::atomic_ref<uint8_t>(data()[offset]).load(std::memory_order_acquire);
}

}  // namespace beeline::test
