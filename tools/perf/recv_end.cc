// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/recv_end.h"

#include <algorithm>
#include <numeric>

namespace beeline::perf {

NetResult<bool> RecvEnd::post(const RecvGroup& group) {
  if (full()) return false;
  Slot& slot = slots_[posted() % slots_.size()];
  arguments_ = group;
  const CallWatch::Inside inside(data_calls_, "irecv");
  const ncclResult_t result =
      net_.calls.irecv(comm_, arguments_.n, arguments_.data.data(), arguments_.sizes.data(),
                       arguments_.tags.data(), arguments_.mrs.data(), nullptr, &slot.request);
  if (result != ncclSuccess) return failed("irecv", result);
  if (slot.request == nullptr) {
    add_one(refused_);
    return false;
  }
  slot.group = group;
  slot.flushing = false;
  add_one(posted_);
  return true;
}

NetResult<bool> RecvEnd::poll() {
  if (idle()) return false;
  Slot& slot = slots_[completed() % slots_.size()];
  if (!slot.flushing) std::fill_n(sizes_.begin(), kMaxParts + 1, 0);
  int done = 0;
  const ncclResult_t result = test(slot, &done);
  if (result != ncclSuccess) return failed("test of a receive", result);
  if (done == 0) return false;
  if (!slot.flushing && !BL_TRY(received(slot))) return false;
  add_one(completed_);
  return true;
}

ncclResult_t RecvEnd::test(const Slot& slot, int* done) {
  const CallWatch::Inside inside(data_calls_,
                                 slot.flushing ? "test of a flush" : "test of a receive");
  return net_.calls.test(slot.request, done, slot.flushing ? nullptr : sizes_.data());
}

// Checks the sizes, and starts a flush if one is needed. False while the flush is in progress.
NetResult<bool> RecvEnd::received(Slot& slot) {
  const auto n = static_cast<size_t>(slot.group.n);
  for (size_t i = 0; i < n; ++i) {
    if (sizes_[i] < 0 || static_cast<size_t>(sizes_[i]) > slot.group.sizes[i]) {
      return broke_contract("test of a receive",
                            "the plugin reported more bytes than the buffer holds");
    }
  }
  if (sizes_[n] != 0) {
    return broke_contract("test of a receive",
                          "the plugin wrote more sizes than the group has parts");
  }
  if (after_ == AfterRecv::kNothing) return true;
  if (std::accumulate(sizes_.begin(), sizes_.begin() + slot.group.n, 0L) == 0) return true;
  void* request = nullptr;
  arguments_ = slot.group;
  const CallWatch::Inside inside(data_calls_, "iflush");
  const ncclResult_t result = net_.calls.iflush(comm_, arguments_.n, arguments_.data.data(),
                                                sizes_.data(), arguments_.mrs.data(), &request);
  if (result != ncclSuccess) return failed("iflush", result);
  slot.flushing = request != nullptr;  // null: nothing had to be flushed
  slot.request = request;
  return !slot.flushing;
}

}  // namespace beeline::perf
