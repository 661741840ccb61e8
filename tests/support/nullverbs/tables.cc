// SPDX-License-Identifier: Apache-2.0
#include "tests/support/nullverbs/tables.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace nullverbs {
namespace {

// Numbers are used in turn, so that none is reused soon.
template <class IsFree>
std::uint32_t find_place(std::uint32_t& next, std::uint32_t first, std::uint32_t count,
                         IsFree is_free) {
  for (std::uint32_t tries = 0; tries < count; ++tries) {
    const std::uint32_t place = next;
    next = place + 1 < count ? place + 1 : first;
    if (is_free(place)) return place;
  }
  std::fputs("nullverbs: more objects than it has numbers for\n", stderr);
  std::abort();
}

}  // namespace

Tables& Tables::instance() {
  static Tables& tables = *new Tables;
  return tables;
}

std::uint32_t Tables::add_qp(Qp& qp) {
  const std::lock_guard lock(lock_);
  const std::uint32_t number =
      find_place(next_qp_, 0x11, kQps, [&](std::uint32_t place) { return qps_[place] == nullptr; });
  qps_[number] = &qp;
  return number;
}

std::uint32_t Tables::add_region(Region region) {
  const std::lock_guard lock(lock_);
  const std::uint32_t place = find_place(next_region_, 1, kRegions,
                                         [&](std::uint32_t at) { return regions_[at].key == 0; });
  region.key = place << kAgeBits | (++age_ & ((1U << kAgeBits) - 1));
  regions_[place] = region;
  return region.key;
}

}  // namespace nullverbs
