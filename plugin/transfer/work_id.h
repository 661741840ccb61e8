// SPDX-License-Identifier: Apache-2.0
//
// All values of wr_id on the queues of a comm. A wr_id says what has completed, not on which path:
// each path has a completion queue of its own, and a path that is made anew gets a new one.
//
// The sender's, as bits:  0-15 slot of the request, or kProbeSlot    16-31 wrs    32-63 bytes
// The receiver's:         62-63 what it is: 0 a receive, 1 a READ, 2 a write, 3 kFence; the rest
// says
//                         which one
//
// Only the ends keep some values apart: `bytes` of a sender may set bit 62, which means a READ at a
// receiver. So no function may take the wr_id of either end, but for kFence.
#pragma once

#include <bit>
#include <cstdint>

#include "plugin/wire/limits.h"

namespace beeline {

namespace work_id {

// At both ends, it is posted behind everything else when a path is fenced, so that all has been
// counted when it completes; with kFence no other field is valid.
inline constexpr std::uint64_t kFence = ~std::uint64_t{0};

// --- The sender ---

// In the slot, it says that the completion is that of several sends, and names the last one.
inline constexpr std::uint16_t kSeveral = 1 << 14;
// As the slot, these say that a write of 0 bytes, or of a message about a path, has completed. It
// belongs to no request.
inline constexpr std::uint16_t kProbeSlot = 0xfffe;
inline constexpr std::uint16_t kInBandSlot = 0xfffd;

// --- The receiver ---

// A receive is its place in the receive queue, which is a number of 32 bits.
constexpr std::uint64_t kind_of(std::uint64_t wr_id) noexcept { return wr_id >> 62; }
// A write of credit lines that is signaled completes those before it as well, so it needs no
// number.
inline constexpr std::uint64_t kGrant = std::uint64_t{2} << 62;
// A write of 0 bytes shows whether the path works.
inline constexpr std::uint64_t kGrantProbe = kGrant + 1;
// A write of a message about a path.
inline constexpr std::uint64_t kGrantInBand = kGrant + 2;
// A READ that flushes GPU memory has this and the slot of its request in bits 0-15.
inline constexpr std::uint64_t kRead = std::uint64_t{1} << 62;
// A READ for the fence of a path has this as well, and a FenceRead in bits 0-15.
inline constexpr std::uint64_t kForFence = std::uint64_t{1} << 32;

constexpr bool is_read(std::uint64_t wr_id) noexcept { return kind_of(wr_id) == kind_of(kRead); }
constexpr bool is_fence_read(std::uint64_t wr_id) noexcept {
  return is_read(wr_id) && (wr_id & kForFence) != 0;
}
constexpr std::uint16_t request_of_read(std::uint64_t wr_id) noexcept {
  return static_cast<std::uint16_t>(wr_id);
}

}  // namespace work_id

// The path that is fenced, which need not be the one whose completion queue has the READ.
struct FenceRead {
  std::uint8_t path = 0;
  std::uint8_t generation = 0;

  constexpr std::uint64_t packed() const noexcept {
    return work_id::kRead | work_id::kForFence | std::uint64_t{generation} << 8 | path;
  }
  static constexpr FenceRead of(std::uint64_t wr_id) noexcept {
    return {.path = static_cast<std::uint8_t>(wr_id),
            .generation = static_cast<std::uint8_t>(wr_id >> 8)};
  }
};

// The wr_id of a sender's signaled work request. It describes this one and the unsignaled ones
// before it, which complete with it. The fast functions need less of it: they leave `bytes` 0, and
// over one path `wrs` too.
struct SendId {
  std::uint16_t slot = 0;   // of the request
  std::uint16_t wrs = 0;    // work requests that have completed
  std::uint32_t bytes = 0;  // of data that they have carried

  constexpr std::uint64_t packed() const noexcept {
    return std::uint64_t{slot} | std::uint64_t{wrs} << 16 | std::uint64_t{bytes} << 32;
  }
  static constexpr SendId of(std::uint64_t wr_id) noexcept {
    return {.slot = static_cast<std::uint16_t>(wr_id),
            .wrs = static_cast<std::uint16_t>(wr_id >> 16),
            .bytes = static_cast<std::uint32_t>(wr_id >> 32)};
  }
};

// --- The values of one end are different ---

namespace work_id {

// A sender's `wr_id % kMaxLines` is the slot, whatever else the wr_id says.
static_assert(std::has_single_bit(wire::kMaxLines) && kSeveral % wire::kMaxLines == 0);
constexpr bool is_slot(std::uint64_t wr_id) noexcept {
  return (SendId::of(wr_id).slot & ~unsigned{kSeveral}) < wire::kMaxLines;
}
// Whether a sender's wr_id is that of one work request which carries a whole short message, over
// one of several paths: the most frequent one.
constexpr bool is_one_short(std::uint64_t wr_id) noexcept {
  return wr_id / wire::kMaxLines == SendId{.wrs = 1}.packed() / wire::kMaxLines;
}
static_assert(is_one_short(SendId{.slot = wire::kMaxLines - 1, .wrs = 1}.packed()));
static_assert(!is_one_short(SendId{.slot = kSeveral, .wrs = 1}.packed()));
static_assert(!is_one_short(SendId{.slot = 0, .wrs = 1, .bytes = 1}.packed()));
static_assert(is_slot(wire::kMaxLines - 1) && is_slot(kSeveral + wire::kMaxLines - 1));
static_assert(!is_slot(kProbeSlot) && !is_slot(kInBandSlot) && !is_slot(kFence));
static_assert(SendId::of(kFence).slot != kProbeSlot && SendId::of(kFence).slot != kInBandSlot);

static_assert(kind_of(UINT32_MAX) == 0 && kind_of(kFence) == 3);
static_assert(kind_of(kGrant) == 2 && kind_of(kGrantProbe) == 2 && kind_of(kGrantInBand) == 2);
static_assert(is_read(kRead) && is_read(kRead | UINT16_MAX) && !is_fence_read(kRead | UINT16_MAX));
static_assert(is_fence_read(FenceRead{.path = 0xff, .generation = 0xff}.packed()));

// These two would be the same at one end.
static_assert(is_read(SendId{.bytes = wire::kMaxMessageBytes}.packed()));

}  // namespace work_id

}  // namespace beeline
