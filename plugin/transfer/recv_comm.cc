// SPDX-License-Identifier: Apache-2.0
//
// Making and closing the receiving end, and what happens to it when the peer goes.
#include "plugin/transfer/recv_comm.h"

#include <algorithm>

namespace beeline {
namespace {

// Grants in flight are at most one write for each irecv, or two where the ring wraps, and a batch
// of them is given back late (RecvComm::post_grant).
constexpr std::uint32_t kSendDepth = 4 * wire::kMaxGroups;

}  // namespace

CommPlan RecvComm::plan() noexcept {
  return {
      .memory_bytes = kFlushPlace + sizeof(std::uint64_t),
      .window_bytes = 0,
      .send_depth = kSendDepth,
      .receive_depth = kReceiveDepth,
      .flush_depth = Flusher::kDepth,
      .inline_bytes = sizeof(wire::CreditLine),
  };
}

RecvComm::RecvComm(std::unique_ptr<Connection> connection, const CommOptions& options,
                   StatsSlot stats) noexcept
    : Comm(std::move(connection), kSendDepth, options, std::move(stats)),
      lines_(connection_.memory.at<wire::CreditLine>()),
      notices_(connection_.memory.at<wire::Notice>(kNoticesAt)),
      requests_(*this, free_requests_),
      gpus_(options.gpus),
      gid_(options.gid),
      pkey_index_(options.pkey_index) {
  set_flushes_apart();
  build_grant();
  build_receives();
}

void RecvComm::close() noexcept {
  collect();
  connection_.link->send_goodbye(settled());
  stats_.close();
}

// The sender closed. What it had completed lies in our memory, and its completion waits in our
// queue or is about to; the rest will never come.
Status RecvComm::settle(std::uint32_t settled) {
  collect();
  for (const Owner& owner : owners_) {
    if (owner.waits && !wire::is_before(owner.position, settled)) {
      return give_up(Errc::kPeerClosed, "receive",
                     ends().there + " closed the connection while a receive was waiting");
    }
  }
  return {};
}

bool RecvComm::waits_below(std::uint32_t settled) const noexcept {
  return std::any_of(owners_.begin(), owners_.end(), [&](const Owner& owner) {
    return owner.waits && wire::is_before(owner.position, settled);
  });
}

// The first line whose message has not arrived, and that somebody waits for.
std::uint32_t RecvComm::settled() noexcept {
  std::uint32_t first = next_;
  for (const Owner& owner : owners_) {
    if (owner.waits && !owner.orphan && wire::is_before(owner.position, first)) {
      first = owner.position;
    }
  }
  return first;
}

}  // namespace beeline
