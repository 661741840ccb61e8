// SPDX-License-Identifier: Apache-2.0
//
// The receiving end of a comm. It receives groups of up to kMaxParts buffers, with one request for
// each group. With AfterRecv::kFlush, a group is done when its data has been flushed.
#pragma once

#include <array>
#include <vector>

#include "tools/perf/end.h"

namespace beeline::perf {

inline constexpr size_t kMaxParts = 8;  // NCCL's own limit

// The arguments of one irecv.
struct RecvGroup {
  int n = 0;
  std::array<void*, kMaxParts> data{};
  std::array<size_t, kMaxParts> sizes{};
  std::array<int, kMaxParts> tags{};
  std::array<void*, kMaxParts> mrs{};

  void add(void* buffer, size_t size, int tag, void* mr) noexcept {
    const auto i = static_cast<size_t>(n++);
    data[i] = buffer;
    sizes[i] = size;
    tags[i] = tag;
    mrs[i] = mr;
  }
};

enum class AfterRecv { kNothing, kFlush };

class RecvEnd : public End {
 public:
  RecvEnd(const Net& net, void* comm, std::string label, size_t depth, AfterRecv after)
      : End(net, comm, std::move(label)), slots_(depth), after_(after) {}

  bool full() const noexcept { return posted() - completed() == slots_.size(); }
  bool idle() const noexcept { return posted() == completed(); }

  // False if the plugin answered "call again", or if this end has no free slot.
  NetResult<bool> post(const RecvGroup& group);
  // True if the oldest group is done. sizes() is then valid until the next poll.
  NetResult<bool> poll();
  const int* sizes() const noexcept { return sizes_.data(); }

 private:
  struct Slot {
    RecvGroup group;
    void* request = nullptr;
    bool flushing = false;
  };

  ncclResult_t test(const Slot& slot, int* done);
  NetResult<bool> received(Slot& slot);

  std::vector<Slot> slots_;
  RecvGroup arguments_;  // overwritten by the next post: a plugin must have taken its copy
  // NCCL passes 64 zeros and adds up all of them.
  std::array<int, 64> sizes_{};
  const AfterRecv after_;
};

}  // namespace beeline::perf
