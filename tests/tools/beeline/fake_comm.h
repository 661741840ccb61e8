// SPDX-License-Identifier: Apache-2.0
//
// A comm of the fake plugin: one TCP connection on the loopback interface that carries data in one
// direction. Size and tag precede each message. It keeps the contract in the strictest way:
// requests are refused now and then, and nothing moves unless the oldest request is tested.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/base/fd.h"
#include "include/nccl/net_common.h"

namespace fake {

inline constexpr int kMostParts = 8;
inline constexpr int kMostGroups = NCCL_NET_MAX_REQUESTS;
inline constexpr size_t kMostSends = size_t{kMostGroups} * kMostParts;

struct Header {
  std::uint32_t size = 0;
  std::int32_t tag = 0;
};

struct Registration {
  const char* data;
  size_t size;
  bool covers(const void* from, size_t bytes) const {
    const char* const begin = static_cast<const char*>(from);
    return begin >= data && begin + bytes <= data + size;
  }
};

struct Request {
  enum class Kind { kFree, kSend, kRecv, kFlush };
  Kind kind = Kind::kFree;
  class Comm* comm = nullptr;
  bool done = false;
  bool seen = false;  // by test, which completes a flush at the second call
  int n = 0;
  struct Part {
    char* data = nullptr;
    size_t size = 0;  // of the send; capacity of the receive
    int tag = 0;
    bool filled = false;
    int arrived = 0;
  };
  std::array<Part, kMostParts> parts{};
};

class Comm {
 public:
  explicit Comm(beeline::UniqueFd fd) : fd_(std::move(fd)), pool_(kMostSends) {}

  // Null: try again later.
  Request* post(Request::Kind kind, const Request& what, size_t limit);
  ncclResult_t progress();
  void release(Request* request);

 private:
  ncclResult_t send_more();
  ncclResult_t receive_more();
  ncclResult_t begin_message();
  void finish_message();

  beeline::UniqueFd fd_;
  std::vector<Request> pool_;
  std::deque<Request*> queue_;  // posted, oldest first
  long calls_ = 0;
  // the current message
  Header header_;
  size_t header_done_ = 0;  // of a send: includes the body
  size_t body_done_ = 0;
  Request::Part* part_ = nullptr;
};

}  // namespace fake
