// SPDX-License-Identifier: Apache-2.0
//
// Making and closing the sending end, and what happens to it when the peer goes.
#include "plugin/transfer/send_comm.h"

#include <algorithm>
#include <bit>

#include "plugin/base/log.h"

namespace beeline {
namespace {

constexpr std::size_t kNoticesAt = wire::kCreditRingBytes;

std::uint32_t largest_chunk(const Device& device) noexcept {
  const std::size_t most = std::min<std::size_t>(device.caps.max_msg_bytes, wire::kMaxMessageBytes);
  return static_cast<std::uint32_t>(std::max(most / wire::kCutBytes, std::size_t{1}) *
                                    wire::kCutBytes);
}

}  // namespace

EndpointPlan SendComm::plan() noexcept {
  return {
      .memory_bytes = kNoticesAt + wire::kMaxLines * sizeof(wire::Notice),
      .window_bytes = wire::kCreditRingBytes,
      .send_depth = kSendDepth,
      .receive_depth = 1,
      .inline_bytes = 64,
  };
}

SendComm::SendComm(Connection&& connection, const CommOptions& options, StatsSlot stats) noexcept
    : Comm(std::move(connection), kSendDepth, options, std::move(stats)),
      ring_(connection_.memory.at<wire::CreditLine>()),
      notices_(connection_.memory.at<wire::Notice>(kNoticesAt)),
      routed_above_(options.routed_above),
      chunk_bytes_(largest_chunk(*connection_.paths.front().device)),
      notify_(connection_.paths.front().notify),
      requests_(*this) {
  wr_.sg_list = &sge_;
}

SendComm::~SendComm() {
  poll();
  connection_.link->say_goodbye(settled());
}

Result<bool> SendComm::test(Request& request, int* size) {
  if (request.missing != 0) {
    poll();
    if (disturbed()) [[unlikely]] {
      const Status status = examine();
      if (!status && request.missing != 0) return fail(status.error());
    }
    if (request.missing != 0) {
      stats_.add(Counter::kEmptyTests);
      if (watch_.is_due()) [[unlikely]]
        BL_TRY(look_for_stall());
      return false;
    }
  }
  if (size != nullptr) *size = static_cast<int>(request.sizes[0]);
  requests_.give_back(request);
  return true;
}

// What the receiver has finished needs no acknowledgement any more: it may have closed its queue
// pair before the last one went out. The rest will never arrive.
Status SendComm::settle(std::uint32_t settled) {
  poll();
  bool lost = false;
  for (Request& request : requests_) {
    if (request.count == 0 || request.missing == 0) continue;
    if (wire::is_before(request.line, settled)) {
      request.missing = 0;
    } else {
      lost = true;
    }
  }
  if (!lost) return {};
  return give_up(Errc::kPeerClosed, "send", "the peer closed it before all had arrived");
}

bool SendComm::waits_below(std::uint32_t) const noexcept { return false; }  // settle() ended them

// The first line whose send has not completed.
std::uint32_t SendComm::settled() noexcept {
  std::uint32_t first = group_.first;
  if (group_.count != 0) {
    // Lines below the first free one are taken, and have a request while they are under way.
    first += static_cast<std::uint32_t>(std::countr_one(group_.taken));
  }
  for (const Request& request : requests_) {
    if (request.count == 0 || request.missing == 0) continue;
    if (wire::is_before(request.line, first)) first = request.line;
  }
  return first;
}

}  // namespace beeline
