// SPDX-License-Identifier: Apache-2.0
//
// Receiving over several paths. Each of them needs a posted receive for every line in flight, since
// the sender chooses the paths. Grants go over the path that data last came from.
#include <arpa/inet.h>

#include <algorithm>

#include "plugin/transfer/recv_comm.h"

namespace beeline {

// As many as fit are posted, since it takes long to count what is needed. A message takes at most
// one receive of each path. If a path has failed meanwhile it can be two, also of a line that is
// granted now: the sender announces what it sends again on paths that may have announced other
// parts of the message.
Errc RecvComm::post_receives_on_all() {
  const LineTable::Expected expected = table_.expected(next_);
  if (gate_.must_recount() && !expected.is_sent_again) gate_.clear_must_recount();
  const std::uint32_t receives_of_a_line = gate_.must_recount() ? 2 : 1;
  std::uint32_t least = UINT32_MAX;
  for (Path& path : paths()) {
    if (!path.posts) continue;
    while (path.posts && path.posted_receives + ReceivePool::kBatch <= receives_.depth()) {
      if (const Errc code = post_receives(path); code != Errc::kOk) return code;
    }
    if (!path.posts) continue;  // its device has refused them
    least = std::min(least, path.posted_receives);
  }
  const bool is_any_up = least != UINT32_MAX;
  const std::uint32_t lines = is_any_up ? least / receives_of_a_line : 0;
  spare_receives_ = lines > expected.lines ? lines - expected.lines : 0;
  return Errc::kOk;
}

void RecvComm::poll_paths(const Request& request) {
  Path& last = grants_.path();
  drain(*this, last);
  if (request.missing == 0) return;
  Path& other = path_at(++turn_ % paths().size());
  if (&other != &last && other.cq != nullptr) drain(*this, other);
}

// For a path about which this end has reported: only READs of flushes still count. They share its
// completion queue.
void RecvComm::absorb_reads(const Path& path, const ibv_wc* completions, int found) {
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    if (work_id::is_read(one->wr_id)) flush_.on_completion(path, *one);
  }
}

}  // namespace beeline
