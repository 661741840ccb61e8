// SPDX-License-Identifier: Apache-2.0
//
// Construction and closing of the receiving end, and the state of its lines after a goodbye.
#include "plugin/transfer/recv_comm.h"

#include <algorithm>
#include <memory>
#include <type_traits>

namespace beeline {
namespace {

// At most one write is under way for each irecv, or two where the ring wraps, and the places of
// unsignaled ones come back late (RecvComm::post_grant).
constexpr std::uint32_t kSendDepth = 4 * wire::kMaxGroups;

}  // namespace

CommPlan RecvComm::plan(std::size_t paths) noexcept {
  return {
      .memory_bytes = flushed_at(paths) + kFlushedBytes,
      .window_bytes = 0,
      .send_depth = kSendDepth,
      .receive_depth = kQueueDepth,
      .flush_depth = Flusher::kDepth,
      .inline_bytes = sizeof(wire::CreditLine),
      .extra_bytes = bytes_of_paths(paths) + (paths > 1 ? sizeof(SeveralPaths) : 0),
  };
}

RecvComm::RecvComm(std::unique_ptr<Connection> connection, const CommOptions& options,
                   StatsSlot stats, PathEvents& events) noexcept
    : Comm(std::move(connection), kSendDepth, options, std::move(stats), events),
      lines_(connection_.memory.at<wire::CreditLine>()),
      to_ring_(connection_.window.address - reinterpret_cast<std::uint64_t>(lines_)),
      fast_limit_(!has_several_paths() && rails() == wire::Rails::kFew ? wire::kMaxMessageBytes + 1
                                                                       : 0),
      grant_path_(&path_at(0)),
      receive_depth_(receive_depth(has_several_paths() ? connection_.planned_paths : 1)),
      requests_(*this, free_requests_),
      gid_(options.gid),
      pkey_(options.pkey) {
  set_flushes_apart();
  build_receives();
  build_grant();
  if (has_several_paths()) {
    static_assert(std::is_trivially_destructible_v<SeveralPaths> &&
                  sizeof(Path) % alignof(SeveralPaths) == 0);
    std::byte* const place = connection_.extra.get() + bytes_of_paths(paths().size());
    several_ = std::construct_at(reinterpret_cast<SeveralPaths*>(place));
  }
  wire::Notice* notices = connection_.memory.at<wire::Notice>(kNoticesAt);
  for (Path& path : paths()) {
    path.notices = notices;
    notices += receive_depth_;
    path.to_next_signal = kSignalGrantsEvery;
  }
}

void RecvComm::close() noexcept {
  end_service();
  collect();
  connection_.link->send_goodbye(settled());
  stats_.record(Event::kClosed);
  stats_.close();
}

void RecvComm::collect() {
  for (Path& path : paths()) drain(*this, path);
}

// Data that the sender had completed is in this end's memory, and its completion is in the queue or
// about to be; other data will never come.
bool RecvComm::finish_below(std::uint32_t settled) {
  collect();
  return std::none_of(owners_.begin(), owners_.end(), [&](const Owner& owner) {
    return owner.waits() && !wire::is_before(owner.position, settled);
  });
}

bool RecvComm::waits_below(std::uint32_t settled) const noexcept {
  return std::any_of(owners_.begin(), owners_.end(), [&](const Owner& owner) {
    return owner.waits() && wire::is_before(owner.position, settled);
  });
}

// The first line whose message has not arrived although a receive waits for it.
std::uint32_t RecvComm::settled() noexcept {
  std::uint32_t first = next_;
  for (const Owner& owner : owners_) {
    if (owner.state == Owner::kAwaited && wire::is_before(owner.position, first)) {
      first = owner.position;
    }
  }
  return first;
}

}  // namespace beeline
