// SPDX-License-Identifier: Apache-2.0
//
// Posts the receives of a receiver's paths, a batch at a time. A notice arrives in the memory of
// its receive; an immediate only consumes one.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/hot.h"
#include "plugin/transfer/path.h"
#include "plugin/wire/limits.h"

namespace beeline {

class ReceivePool {
 public:
  static constexpr std::uint32_t kBatch = 32;
  // The receives that may be posted on each path: for all lines in flight, the unused rest of a
  // batch, and one more batch. With more than four paths there are 96: between 64 and 96 lines can
  // be in flight, and the next batch is posted when it fits. `paths` counts those that could not be
  // made as well, because the memory for notices was planned with them.
  static constexpr std::uint32_t depth_of(std::size_t paths) noexcept {
    constexpr std::uint32_t kLines = wire::kMaxLines;
    return paths <= 4 ? kLines + 2 * kBatch : kLines / 2 + kBatch;
  }
  static_assert(wire::kMaxLines / 2 % kBatch == 0);  // no batch wraps

  explicit ReceivePool(std::uint32_t depth) noexcept : depth_(depth) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      sges_[i].length = sizeof(wire::Notice);
      wrs_[i] = {.wr_id = 0,
                 .next = i + 1 < kBatch ? &wrs_[i + 1] : nullptr,
                 .sg_list = &sges_[i],
                 .num_sge = 1};
    }
  }
  ReceivePool(const ReceivePool&) = delete;
  ReceivePool& operator=(const ReceivePool&) = delete;

  std::uint32_t depth() const noexcept { return depth_; }
  // Returns 0, or the errno of ibv_post_recv.
  BL_INLINED int post(Path& path) noexcept;

 private:
  std::uint32_t depth_;
  // One batch for all paths: the device copies work requests when they are posted.
  std::array<ibv_sge, kBatch> sges_{};
  std::array<ibv_recv_wr, kBatch> wrs_{};
};

BL_INLINED int ReceivePool::post(Path& path) noexcept {
  const std::uint32_t first = path.next_receive;
  std::uint64_t place = reinterpret_cast<std::uint64_t>(&path.notices[first]);
  std::uint64_t id = first;
#pragma GCC unroll 8
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    sges_[i].addr = place;
    wrs_[i].wr_id = id++;
    place += sizeof(wire::Notice);
  }
  if (sges_[0].lkey != path.lkey) {
    for (ibv_sge& sge : sges_) sge.lkey = path.lkey;
  }
  ibv_recv_wr* refused = nullptr;
  const int rc = ibv_post_recv(path.qp, wrs_.data(), &refused);
  if (rc != 0) return rc;
  path.next_receive = (first + kBatch) % depth_;
  path.posted_receives += kBatch;
  return 0;
}

}  // namespace beeline
