// SPDX-License-Identifier: Apache-2.0
//
// Registered memory with known content: patterns that differ at every offset, between guard bytes
// that no operation may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/verbs_handles.h"

namespace beeline::test {

inline constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

// Writes bytes that depend on the seed and on the offset, so that shifted or swapped data differs.
void fill_pattern(std::span<uint8_t> bytes, uint32_t seed);
// The first offset at which the bytes differ from the seed's pattern from its byte `from` on, or
// size().
size_t first_difference(std::span<const uint8_t> bytes, uint32_t seed, size_t from = 0);
inline bool has_pattern(std::span<const uint8_t> bytes, uint32_t seed, size_t from = 0) {
  return first_difference(bytes, seed, from) == bytes.size();
}

// A range of registered memory, with its keys. It may be sent to another process as bytes.
struct Region {
  uint64_t addr = 0;
  uint32_t length = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;

  ibv_sge sge() const { return {addr, length, lkey}; }
  // The result may lie outside of the registration, which some tests need.
  Region moved(int64_t by, uint32_t new_length) const {
    return {addr + static_cast<uint64_t>(by), new_length, lkey, rkey};
  }
};

// Zeroed memory that is registered exactly, between guard bytes.
class Buffer {
 public:
  Buffer(ibv_pd* pd, size_t size, int access = kAllAccess);

  size_t size() const noexcept { return size_; }
  uint8_t* data() noexcept { return storage_.data() + kGuard; }
  std::span<uint8_t> bytes() noexcept { return {data(), size_}; }
  std::span<uint8_t> bytes(size_t offset, size_t length) { return bytes().subspan(offset, length); }
  ibv_mr* mr() const noexcept { return mr_.get(); }
  void deregister() { mr_.reset(); }

  Region all() { return part(0, size_); }
  Region part(size_t offset, size_t length);

  void fill(uint32_t seed) { fill_pattern(bytes(), seed); }
  bool has(uint32_t seed) { return has_pattern(bytes(), seed); }
  bool is_zero(size_t offset, size_t length) const;
  bool guards_intact() const;

  // Reads one byte that a device may be writing at the same time.
  uint8_t peek(size_t offset);

 private:
  static constexpr size_t kGuard = 64;
  std::vector<uint8_t> storage_;
  size_t size_;
  MrPtr mr_;
};

}  // namespace beeline::test
