// SPDX-License-Identifier: Apache-2.0
//
// Posting of receives, rarer cases of granting, and completions other than single immediates. No
// lock, no allocation and no system call.
#include <arpa/inet.h>

#include <utility>

#include "plugin/transfer/recv_comm.h"

namespace beeline {

bool RecvComm::make_room() {
  collect();
  return has_room();
}

// The line after those that were written is still in use, or its buffer is invalid. Nothing was
// granted yet.
Errc RecvComm::withdraw_lines(std::uint32_t written) {
  for (std::uint32_t i = 0; i < written; ++i)
    owners_[(next_ + i) % wire::kMaxLines].state = Owner::kNothing;
  if (!owners_[(next_ + written) % wire::kMaxLines].waits()) return Errc::kInvalid;
  collect();
  return Errc::kOk;
}

Errc RecvComm::post_receives_for(std::uint32_t lines) {
  while (!has_several_paths() && spare_receives_ < lines) {
    if (const Errc code = post_receives(only_path()); code != Errc::kOk) return code;
    if (only_path().posts) spare_receives_ += kBatch;
  }
  return has_several_paths() ? post_receives_on_all(lines) : Errc::kOk;
}

void RecvComm::build_receives() noexcept {
  for (std::size_t i = 0; i < kBatch; ++i) {
    receive_sges_[i] = {.addr = 0, .length = sizeof(wire::Notice), .lkey = 0};
    receive_wrs_[i] = {.wr_id = 0,
                       .next = i + 1 < kBatch ? &receive_wrs_[i + 1] : nullptr,
                       .sg_list = &receive_sges_[i],
                       .num_sge = 1};
  }
}

Errc RecvComm::post_receives(Path& path) {
  const std::uint32_t first = path.next_receive;
  std::uint64_t place = reinterpret_cast<std::uint64_t>(&path.notices[first]);
  std::uint64_t id = first;
#pragma GCC unroll 8
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    receive_sges_[i].addr = place;
    receive_wrs_[i].wr_id = id++;
    place += sizeof(wire::Notice);
  }
  if (receive_sges_[0].lkey != path.lkey) {
    for (ibv_sge& sge : receive_sges_) sge.lkey = path.lkey;
  }
  ibv_recv_wr* refused = nullptr;
  if (const int rc = ibv_post_recv(path.qp, receive_wrs_.data(), &refused); rc != 0) {
    return events_.on_refused(*this, path, rc, "post receives");
  }
  path.next_receive = (first + kBatch) % receive_depth_;
  path.posted_receives += kBatch;
  return Errc::kOk;
}

Errc RecvComm::grant_around_end(std::uint32_t first, std::uint32_t count, std::uint32_t head) {
  const Errc code = post_grant(first, head);
  return code == Errc::kOk ? post_grant(first + head, count - head) : code;
}

void RecvComm::build_grant() noexcept {
  grant_wr_.wr_id = work_id::kGrant;
  grant_wr_.sg_list = &grant_sge_;
  grant_wr_.num_sge = 1;
  grant_wr_.opcode = IBV_WR_RDMA_WRITE;
  grant_sge_.length = sizeof(wire::CreditLine);
  grant_by(*grant_path_);
}

int RecvComm::post_signaled_grant() noexcept {
  Path& path = *grant_path_;
  path.to_next_signal = kSignalGrantsEvery;
  grant_wr_.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  const int rc = ibv_post_send(path.qp, &grant_wr_, &refused);
  grant_wr_.send_flags = flags_of_grant(path);
  return rc;
}

// If the path is given up, the line counts as granted, and is sent again when the path has been.
Errc RecvComm::on_refused_grant(int rc) {
  const Errc code = events_.on_refused(*this, *grant_path_, rc, "grant receives");
  if (code == Errc::kOk) return code;
  *made_ = nullptr;
  return leave_with(code);
}

void RecvComm::grant_by(Path& path) noexcept {
  grant_path_ = &path;
  grant_wr_.send_flags = flags_of_grant(path);
  grant_sge_.lkey = path.lkey;
  grant_wr_.wr.rdma.rkey = path.ring_key;
}

// A receiver may wait for long with good reason, and most of its grants complete in silence: only a
// signaled write of its own shows whether they arrive.
Status RecvComm::probe_paths() {
  for (Path& path : paths()) {
    if (!path.posts || path.is_probing || path.send_free == 0) continue;
    BL_TRY(post_probe(path, work_id::kGrantProbe));
    path.is_probing = path.posts;
  }
  return {};
}

void RecvComm::absorb(Path& path, const ibv_wc* completions, int found) {
  if (found < 0) return events_.on_unreadable_queue(*this, path);
  if (has_several_paths()) return absorb_on(path, completions, found);
  watch_.moved();
  std::uint64_t bytes = 0;
  auto messages = static_cast<std::uint64_t>(found);
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    const std::uint32_t size = one->byte_len;
    const int place = on_immediate(*one);
    if (place < 0) [[unlikely]] {
      on_other(path, *one);
      --messages;
      continue;
    }
    bytes += size;
    stats_.set_size(static_cast<std::uint32_t>(place), size);
  }
  stats_.add_messages(messages, bytes);
  if (flushes_in_test()) [[unlikely]]
    flush_arrived();
}

void RecvComm::on_other(Path& path, const ibv_wc& completion) {
  if (work_id::is_read(completion.wr_id)) return on_flush(path, completion);
  if (completion.status != IBV_WC_SUCCESS) {
    if (!path.posts) return on_flushed(path, completion);
    const char* const doing = completion.wr_id >= work_id::kGrant ? "grant" : "receive";
    return events_.on_failed_request(*this, path, completion, doing);
  }
  // Not a switch: no other opcode can come.
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    if (const int place = on_optional(completion); place >= 0) {
      return stats_.add_message(static_cast<std::uint32_t>(place), completion.byte_len);
    }
    if (ignores(wire::unpack(ntohl(completion.imm_data)).line)) return;
    return events_.on_protocol_error(*this, "the arrival of a message that no receive waits for");
  }
  if (completion.opcode == IBV_WC_RECV) return on_notice(path, completion);
  if (completion.opcode == IBV_WC_RDMA_WRITE) return on_write(path, completion);
  (void)events_.on_fault(*this, Errc::kInternal, "go on",
                         "a completion came of a work request that was never posted");
}

void RecvComm::on_write(Path& path, const ibv_wc& completion) noexcept {
  const bool is_probe = completion.wr_id == work_id::kGrantProbe;
  path.send_free += is_probe ? 1 : kSignalGrantsEvery;
  if (is_probe) path.is_probing = false;
}

// As on_immediate(), for a receive that is done already.
int RecvComm::on_optional(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS || completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
    return -1;
  }
  const std::uint16_t line = wire::unpack(ntohl(completion.imm_data)).line;
  const std::uint32_t place = line % wire::kMaxLines;
  Owner& owner = owners_[place];
  if (owner.state != Owner::kOptional || static_cast<std::uint16_t>(owner.position) != line ||
      completion.byte_len > lines_[place].capacity) {
    return -1;
  }
  owner.state = Owner::kNothing;
  return static_cast<int>(place);
}

void RecvComm::arrived(std::uint32_t place, std::uint32_t size) noexcept {
  Owner& owner = owners_[place];
  stats_.add_message(place, size);
  if (std::exchange(owner.state, Owner::kNothing) == Owner::kOptional) return;
  Request& request = requests_[owner.request];
  request.sizes[owner.index] = size;
  --request.missing;
}

void RecvComm::on_notice(Path& path, const ibv_wc& completion) {
  const wire::Notice& notice = path.notices[completion.wr_id % receive_depth_];
  const std::uint32_t place = notice.line % wire::kMaxLines;
  const Owner& owner = owners_[place];
  const bool is_awaited = completion.byte_len == sizeof notice && owner.waits() &&
                          static_cast<std::uint16_t>(owner.position) == notice.line &&
                          notice.generation == path.generation &&
                          notice.size <= lines_[place].capacity;
  if (!is_awaited && ignores(notice.line)) return;
  if (!is_awaited || !wire::is_consistent(notice)) [[unlikely]] {
    return events_.on_protocol_error(*this, "a notice of a message that no receive waits for");
  }
  const wire::ChunkMask all = wire::all_chunks_of(notice.size);
  if (several_ == nullptr) {
    if (notice.which != all) {
      return events_.on_protocol_error(*this, "a notice of a part of a message that is not split");
    }
  } else {
    wire::ChunkMask& here = several_->chunks[place];
    if ((here & notice.which) != 0) {
      return events_.on_protocol_error(*this, "a notice of data that has arrived before");
    }
    note_carrier(path, notice.line);
    shared::add(path.bytes, wire::bytes_of(notice.which, notice.size));
    here |= notice.which;
    if (here != all) return;
    here = 0;
  }
  arrived(place, notice.size);
}

}  // namespace beeline
