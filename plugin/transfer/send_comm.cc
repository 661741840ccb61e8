// SPDX-License-Identifier: Apache-2.0
//
// Making and closing the sending end, and what happens to it when the peer goes.
#include "plugin/transfer/send_comm.h"

#include <algorithm>

#include "common/base/log.h"

namespace beeline {
namespace {

constexpr std::size_t kNoticesAt = wire::kCreditRingBytes;

std::uint32_t largest_chunk(const Device& device) noexcept {
  const std::size_t most = std::min<std::size_t>(device.caps.max_msg_bytes, wire::kMaxMessageBytes);
  return static_cast<std::uint32_t>(std::max(most / wire::kCutBytes, std::size_t{1}) *
                                    wire::kCutBytes);
}

std::int64_t most_whole(Notify notify, std::uint32_t chunk_bytes,
                        const CommOptions& options) noexcept {
  switch (notify) {
    case Notify::kImmediate: return chunk_bytes;
    case Notify::kNoticeAfterRouted:
      return static_cast<std::int64_t>(std::min<std::size_t>(options.routed_above, chunk_bytes));
    case Notify::kNotice: break;
  }
  return -1;
}

}  // namespace

CommPlan SendComm::plan() noexcept {
  return {
      .memory_bytes = kNoticesAt + wire::kMaxLines * sizeof(wire::Notice),
      .window_bytes = wire::kCreditRingBytes,
      .send_depth = kSendDepth,
      .receive_depth = 1,
      .inline_bytes = 64,
  };
}

SendComm::SendComm(std::unique_ptr<Connection> connection, const CommOptions& options,
                   StatsSlot stats) noexcept
    : Comm(std::move(connection), kSendDepth, options, std::move(stats)),
      ring_(connection_.memory.at<wire::CreditLine>()),
      notices_(connection_.memory.at<wire::Notice>(kNoticesAt)),
      chunk_bytes_(largest_chunk(*connection_.paths.front().device)),
      most_whole_(most_whole(connection_.paths.front().notify, chunk_bytes_, options)),
      most_at_once_(static_cast<std::uint64_t>(std::max<std::int64_t>(most_whole_, 0))),
      requests_(*this, free_requests_) {
  await_in_order(wire::order_of(1, 0, 1, 0));
  wr_.sg_list = &sge_;
  wr_.num_sge = 1;
  wr_.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
}

void SendComm::close() noexcept {
  collect();
  connection_.link->send_goodbye(settled());
  stats_.close();
}

// What the receiver has finished needs no acknowledgement any more: it may have closed its queue
// pair before the last one went out. The rest will never arrive.
Status SendComm::settle(std::uint32_t settled) {
  collect();
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
  return give_up(Errc::kPeerClosed, "send",
                 ends().there + " closed the connection before all had arrived");
}

bool SendComm::waits_below(std::uint32_t) const noexcept { return false; }  // settle() ended them

// The first line whose send has not completed.
std::uint32_t SendComm::settled() noexcept {
  // What is taken has a request while it is under way.
  std::uint32_t first = wire::number_of(awaited_order_) - 1;
  for (const Request& request : requests_) {
    if (request.count == 0 || request.missing == 0) continue;
    if (wire::is_before(request.line, first)) first = request.line;
  }
  return first;
}

}  // namespace beeline
