// SPDX-License-Identifier: Apache-2.0
//
// The receiver's hot path: grant buffers, count what arrives. No lock, no allocation, no system
// call.
#include <arpa/inet.h>

#include <algorithm>

#include "common/base/log.h"
#include "plugin/transfer/completions.h"
#include "plugin/transfer/recv_comm.h"

namespace beeline {
namespace {

// No receive has such a wr_id.
constexpr std::uint64_t kGrantId = std::uint64_t{1} << 63;
constexpr std::uint64_t kQuestionId = kGrantId + 1;

}  // namespace

bool RecvComm::make_room() {
  collect();
  return has_room();
}

// Behind the lines that were written there is one in use, or a buffer that makes no sense. Nobody
// has been told of them.
Errc RecvComm::take_back(std::uint32_t written) {
  for (std::uint32_t i = 0; i < written; ++i) owners_[(next_ + i) % wire::kMaxLines].waits = false;
  if (!owners_[(next_ + written) % wire::kMaxLines].waits) return Errc::kInvalid;
  collect();
  return Errc::kOk;
}

Errc RecvComm::post_receives_for(std::uint32_t lines) {
  while (spare_receives_ < lines) {
    if (const Status posted = post_receives(); !posted) return posted.error().code;
  }
  return Errc::kOk;
}

void RecvComm::build_receives() noexcept {
  for (std::size_t i = 0; i < kBatch; ++i) {
    receive_sges_[i] = {
        .addr = 0, .length = sizeof(wire::Notice), .lkey = path_states().front().lkey};
    receive_wrs_[i] = {.wr_id = 0,
                       .next = i + 1 < kBatch ? &receive_wrs_[i + 1] : nullptr,
                       .sg_list = &receive_sges_[i],
                       .num_sge = 1};
  }
}

Status RecvComm::post_receives() {
  PathState& path = path_states().front();
  const std::uint64_t places = reinterpret_cast<std::uint64_t>(&notices_[next_notice_]);
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    receive_sges_[i].addr = places + i * sizeof(wire::Notice);
    receive_wrs_[i].wr_id = next_notice_ + i;
  }
  ibv_recv_wr* refused = nullptr;
  if (const int rc = ibv_post_recv(path.qp, receive_wrs_.data(), &refused); rc != 0) {
    return refused_by_device(rc, "post receives");
  }
  next_notice_ = (next_notice_ + kBatch) % kReceiveDepth;
  spare_receives_ += kBatch;
  return {};
}

Errc RecvComm::grant_around_end(std::uint32_t first, std::uint32_t count, std::uint32_t head) {
  const Errc code = post_grant(first, head);
  return code == Errc::kOk ? post_grant(first + head, count - head) : code;
}

void RecvComm::build_grant() noexcept {
  grant_sge_.lkey = path_states().front().lkey;
  grant_wr_.wr_id = kGrantId;
  grant_wr_.sg_list = &grant_sge_;
  grant_wr_.num_sge = 1;
  grant_wr_.opcode = IBV_WR_RDMA_WRITE;
  grant_wr_.wr.rdma.rkey = connection_.window.rkeys[0];
}

// A receiver may wait for ever with good reason, and most of its grants complete in silence: only a
// write of its own tells whether they arrive.
Status RecvComm::ask_path() {
  PathState& path = path_states().front();
  if (asking_ || path.send_free == 0) return {};
  ibv_send_wr question = {};
  question.wr_id = kQuestionId;
  question.opcode = IBV_WR_RDMA_WRITE;
  question.send_flags = IBV_SEND_SIGNALED;
  question.wr.rdma.remote_addr = connection_.window.address;
  question.wr.rdma.rkey = connection_.window.rkeys[0];
  ibv_send_wr* refused = nullptr;
  if (const int rc = ibv_post_send(path.qp, &question, &refused); rc != 0) {
    return refused_by_device(rc, "ask whether the path works");
  }
  --path.send_free;
  asking_ = true;
  return {};
}

void RecvComm::absorb_one(const ibv_wc& completion) {
  watch_.moved();
  if (on_immediate(completion)) [[likely]] {
    stats_.add_messages(1, completion.byte_len);
  } else {
    on_other(completion);
  }
  if (flushes_in_test()) [[unlikely]]
    flush_arrived();
}

void RecvComm::absorb(const ibv_wc* completions, int found) {
  if (found < 0) return fail_queue();
  watch_.moved();
  std::uint64_t bytes = 0;
  auto messages = static_cast<std::uint64_t>(found);
  for (const ibv_wc* one = completions; one != completions + found; ++one) {
    const std::uint32_t size = one->byte_len;
    if (!on_immediate(*one)) [[unlikely]] {
      on_other(*one);
      --messages;
      continue;
    }
    bytes += size;
  }
  stats_.add_messages(messages, bytes);
  if (flushes_in_test()) [[unlikely]]
    flush_arrived();
}

// True: it was the arrival of a message that a receive waits for.
bool RecvComm::on_immediate(const ibv_wc& completion) noexcept {
  if (completion.status != IBV_WC_SUCCESS || completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
      [[unlikely]] {
    return false;
  }
  const wire::Immediate news = wire::unpack(ntohl(completion.imm_data));
  Owner& owner = owners_[news.line % wire::kMaxLines];
  if (!owner.waits || static_cast<std::uint16_t>(owner.position) != news.line ||
      completion.byte_len > lines_[news.line % wire::kMaxLines].capacity) [[unlikely]] {
    return false;
  }
  arrived(owner, completion.byte_len);
  return true;
}

void RecvComm::on_other(const ibv_wc& completion) {
  if (Flusher::is_read(completion.wr_id)) return on_flush(completion);
  if (completion.status != IBV_WC_SUCCESS) {
    return suspect(completion, completion.wr_id >= kGrantId ? "grant" : "receive");
  }
  // Not a switch: the rest of the opcodes is of no use here.
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    return break_protocol("the arrival of a message that no receive waits for");
  }
  if (completion.opcode == IBV_WC_RECV) return on_notice(completion);
  if (completion.opcode == IBV_WC_RDMA_WRITE) return on_write(completion);
  (void)give_up(Errc::kInternal, "go on", "a completion came of something that was never posted");
}

void RecvComm::on_write(const ibv_wc& completion) noexcept {
  const bool is_answer = completion.wr_id == kQuestionId;
  path_states().front().send_free += is_answer ? 1 : kSignalGrantsEvery;
  if (is_answer) asking_ = false;
}

void RecvComm::on_notice(const ibv_wc& completion) {
  const wire::Notice& notice = notices_[completion.wr_id % kReceiveDepth];
  Owner& owner = owners_[notice.line % wire::kMaxLines];
  if (completion.byte_len != sizeof notice || !owner.waits || owner.position != notice.line ||
      notice.first != 0 || notice.chunks != notice.all_chunks ||
      notice.size > lines_[notice.line % wire::kMaxLines].capacity) [[unlikely]] {
    return break_protocol("a notice of a message that no receive waits for");
  }
  arrived(owner, notice.size);
  stats_.add_messages(1, notice.size);
}

void RecvComm::arrived(Owner& owner, std::uint32_t size) noexcept {
  owner.waits = false;
  if (owner.orphan) return;
  Request& request = requests_[owner.request];
  request.sizes[owner.index] = size;
  --request.missing;
}

}  // namespace beeline
