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
      .memory_bytes = flushed_at(paths) + GpuFlush::kPlaceBytes,
      .window_at = wire::kCreditRingBytes,
      .window_bytes = paths > 1 ? sizeof(wire::InBandCell) : 0,
      .send_depth = kSendDepth,
      .receive_depth = kQueueDepth,
      .flush_depth = Flusher::kDepth,
      .inline_bytes = sizeof(wire::CreditLine),
      .extra_bytes = bytes_of_paths(paths) + (paths > 1 ? sizeof(LineTable::Records) : 0),
  };
}

RecvComm::RecvComm(std::unique_ptr<Connection> connection, const CommOptions& options,
                   StatsSlot stats, PathEvents& events) noexcept
    : Comm(std::move(connection), kSendDepth, options, std::move(stats), events),
      lines_(connection_.memory.at<wire::CreditLine>()),
      fast_limit_(rails() == wire::Rails::kFew ? wire::kMaxMessageBytes + 1 : 0),
      grants_(connection_.window.address - reinterpret_cast<std::uint64_t>(lines_),
              *std::ranges::find(paths(), true, &Path::grants)),
      receives_(ReceivePool::depth_of(has_several_paths() ? connection_.planned_paths : 1)),
      table_(lines_),
      requests_(*this, free_requests_),
      flush_({.comm = *this, .lines = table_, .requests = requests_.begin()}, options) {
  set_flushes_apart();
  if (has_several_paths()) {
    using Records = LineTable::Records;
    static_assert(std::is_trivially_destructible_v<Records> &&
                  sizeof(Path) % alignof(Records) == 0);
    std::byte* const place = connection_.extra.get() + bytes_of_paths(paths().size());
    table_.use_records(std::construct_at(reinterpret_cast<Records*>(place)));
  }
  wire::Notice* notices =
      connection_.memory.at<wire::Notice>(notices_at(connection_.planned_paths));
  for (Path& path : paths()) {
    path.notices = notices;
    notices += receives_.depth();
    path.to_next_signal = GrantWriter::kSignalEvery;
  }
}

void RecvComm::close() noexcept {
  end_service();
  collect();
  connection_.link->send_goodbye(table_.settled(next_));
  stats_.record(Event::kClosed);
  stats_.close();
}

void RecvComm::collect() { drain_all(*this); }

// Data that the sender had completed is in this end's memory, and its completion is in the queue or
// about to be; other data will never come.
bool RecvComm::finish_below(std::uint32_t settled) {
  collect();
  return !table_.waits_from(settled);
}

bool RecvComm::waits_below(std::uint32_t settled) const noexcept {
  return table_.waits_below(settled);
}

}  // namespace beeline
