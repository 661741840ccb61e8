// SPDX-License-Identifier: Apache-2.0
//
// Tables that map a queue pair's number to the queue pair, and a key to its memory, by one array
// lookup each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/support/nullverbs/arena.h"
#include "tests/support/nullverbs/objects.h"

namespace nullverbs {

// The memory of a key. lkey and rkey are the same.
struct Region {
  std::uint64_t address;  // as in work requests
  std::uint64_t length;
  std::uint64_t shift;  // added to it for the address in this process
  std::uint32_t key;    // 0: the entry is free
  std::uint32_t domain : 16;
  std::uint32_t access : 16;  // IBV_ACCESS_*; the higher bits ask for no right
};
static_assert(sizeof(Region) == 32);

// Threads: any. Lookups take no lock. The object that they find may be destroyed at any time, but
// its entry stays.
class Tables {
 public:
  static Tables& instance();

  // Ends the process when no entry is left.
  std::uint32_t add_qp(Qp& qp);
  void remove_qp(std::uint32_t number) noexcept { qps_[number % kQps] = nullptr; }
  Qp* qp(std::uint32_t number) const noexcept { return qps_[number % kQps]; }

  std::uint32_t add_region(Region region);
  void remove_region(std::uint32_t key) noexcept { regions_[place_of(key)].key = 0; }

  // The address of [address, address + length) in this process, or null if the key does not cover
  // it.
  std::byte* find(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                  std::uint32_t domain, std::uint32_t access) const noexcept {
    const Region& region = regions_[place_of(key)];
    const std::uint64_t into = address - region.address;
    if (region.key != key || region.domain != domain || (region.access & access) != access ||
        into > region.length || length > region.length - into) [[unlikely]] {
      return nullptr;
    }
    return reinterpret_cast<std::byte*>(address + region.shift);
  }

 private:
  static constexpr std::uint32_t kQps = 1 << 17;
  static constexpr std::uint32_t kRegions = 1 << 18;
  static constexpr std::uint32_t kAgeBits = 8;  // a key differs from the last one of its entry

  static std::uint32_t place_of(std::uint32_t key) noexcept { return (key >> kAgeBits) % kRegions; }

  SpinLock lock_;
  std::uint32_t next_qp_ = 0x11;  // the first few have meanings
  std::uint32_t next_region_ = 1;
  std::uint32_t age_ = 0;
  Qp** qps_ = Arena::instance().take_array<Qp*>(kQps);
  Region* regions_ = Arena::instance().take_array<Region>(kRegions);
};

}  // namespace nullverbs
