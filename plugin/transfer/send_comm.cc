// SPDX-License-Identifier: Apache-2.0
//
// Construction and closing of the sending end, and the state of its requests after a goodbye.
#include "plugin/transfer/send_comm.h"

#include <algorithm>
#include <memory>
#include <type_traits>

namespace beeline {

CommPlan SendComm::plan(std::size_t paths) noexcept {
  return {
      .memory_bytes = notices_at(paths) + notice_places(paths) * sizeof(wire::Notice),
      .window_bytes = wire::kCreditRingBytes + (paths > 1 ? sizeof(wire::InBandCell) : 0),
      .send_depth = kQueueDepth,
      .receive_depth = 1,
      .inline_bytes = 64,
      .extra_bytes = bytes_of_paths(paths) + (paths > 1 ? sizeof(SeveralPaths) : 0),
  };
}

SendComm::SendComm(std::unique_ptr<Connection> connection, const CommOptions& options,
                   StatsSlot stats, PathEvents& events) noexcept
    : Comm(std::move(connection), kSendDepth, options, std::move(stats), events),
      ring_(connection_.memory.at<wire::CreditLine>()),
      notices_(connection_.memory.at<wire::Notice>(notices_at(connection_.planned_paths))),
      credits_(cursor_, ring_, rails(),
               !has_several_paths() && rails() == wire::Rails::kFew && path_at(0).rail == 0 &&
                   path_at(0).peer_rail == 0),
      routed_above_(options.routed_above),
      requests_(*this, free_requests_) {
  for (Path& path : paths()) path.most_immediate = most_immediate(path);
  if (!has_several_paths()) {
    most_fast_ = static_cast<std::uint64_t>(std::max<std::int64_t>(path_at(0).most_immediate, 0));
  } else {
    static_assert(std::is_trivially_destructible_v<SeveralPaths> &&
                  sizeof(Path) % alignof(SeveralPaths) == 0);
    std::byte* const place = connection_.extra.get() + bytes_of_paths(paths().size());
    several_ =
        std::construct_at(reinterpret_cast<SeveralPaths*>(place), paths(), options.split_on_qps);
  }
}

std::int64_t SendComm::most_immediate(const Path& path) const noexcept {
  switch (path.resources->notify) {
    case Notify::kImmediate: return path.most_bytes;
    case Notify::kNoticeAfterRouted:
      return static_cast<std::int64_t>(std::min<std::size_t>(routed_above_, path.most_bytes));
    case Notify::kNotice: break;
  }
  return -1;
}

void SendComm::close() noexcept {
  end_service();
  // Only polls: chunks that wait must not be sent any more, since their memory may be deregistered.
  drain_all(*this);
  connection_.link->send_goodbye(settled());
  stats_.record(Event::kClosed);
  stats_.close();
}

void SendComm::collect() {
  (void)post_what_is_held();  // if it fails, the comm is alarmed
  drain_all(*this);
  if (has_several_paths()) assign_waiting();
}

// A receiver that has finished may close its queue pair before its last acknowledgement is out.
bool SendComm::finish_below(std::uint32_t settled) {
  collect();
  bool all = true;
  for (Request& request : requests_) {
    if (request.count == 0 || request.missing == 0) continue;
    if (wire::is_before(request.line, settled)) {
      request.missing = 0;
      if (request.split != 0) several_->splits.forget(request);
    } else {
      all = false;
    }
  }
  return all;
}

bool SendComm::waits_below(std::uint32_t) const noexcept { return false; }  // see finish_below()

// The first line whose send has not completed. A line that is taken has a request until then.
std::uint32_t SendComm::settled() noexcept {
  std::uint32_t first = credits_.next();
  for (const Request& request : requests_) {
    if (request.count == 0 || request.missing == 0) continue;
    if (wire::is_before(request.line, first)) first = request.line;
  }
  return first;
}

}  // namespace beeline
