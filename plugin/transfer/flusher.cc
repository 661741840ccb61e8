// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/flusher.h"

namespace beeline {

void Flusher::add(const Read& read) noexcept {
  waiting_[end_++ % kMostWaiting] = read;
  post_waiting();
}

void Flusher::post_waiting() noexcept {
  while (!broken_ && first_ != end_ && posted_ < kDepth) {
    const Read& read = waiting_[first_ % kMostWaiting];
    const int rc = loopback_->post({.opcode = IBV_WR_RDMA_READ,
                                    .local = place_,
                                    .lkey = lkey_,
                                    .remote = read.address,
                                    .rkey = read.rkey,
                                    .bytes = 1,
                                    .id = kMark | read.request});
    broken_ = rc != 0;
    if (broken_) return;
    ++first_;
    ++posted_;
  }
}

void Flusher::on_completion(bool success) noexcept {
  --posted_;
  broken_ = broken_ || !success;
  post_waiting();
}

}  // namespace beeline
