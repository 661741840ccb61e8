// SPDX-License-Identifier: Apache-2.0
//
// The sending end of a comm. Requests complete in the order in which they were posted, and only the
// oldest is tested, as in NCCL.
#pragma once

#include <vector>

#include "tools/perf/end.h"

namespace beeline::perf {

class SendEnd : public End {
 public:
  SendEnd(const Net& net, void* comm, std::string label, size_t depth)
      : End(net, comm, std::move(label)), requests_(depth) {}

  bool full() const noexcept { return posted() - completed() == requests_.size(); }
  bool idle() const noexcept { return posted() == completed(); }

  // False if the plugin answered "call again", or if this end has no free slot.
  NetResult<bool> post(void* data, size_t size, int tag, void* mr) {
    if (full()) return false;
    // As in NCCL, the variable still contains the slot's previous request.
    void** const request = &requests_[posted() % requests_.size()];
    const CallWatch::Inside inside(data_calls_, "isend");
    const ncclResult_t result = net_.calls.isend(comm_, data, size, tag, mr, nullptr, request);
    if (result != ncclSuccess) return failed("isend", result);
    add_one(*request == nullptr ? refused_ : posted_);
    return *request != nullptr;
  }

  // True if the oldest send is done. Its buffer can be reused.
  NetResult<bool> poll() {
    if (idle()) return false;
    int done = 0;
    int size = 0;
    void* const oldest = requests_[completed() % requests_.size()];
    const CallWatch::Inside inside(data_calls_, "test of a send");
    const ncclResult_t result = net_.calls.test(oldest, &done, &size);
    if (result != ncclSuccess) return failed("test of a send", result);
    if (done != 0) add_one(completed_);
    return done != 0;
  }

 private:
  std::vector<void*> requests_;
};

}  // namespace beeline::perf
