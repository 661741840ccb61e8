// SPDX-License-Identifier: Apache-2.0
//
// The receiver's hot path: grant buffers, count what arrives. No lock, no allocation, no system
// call.
#include <arpa/inet.h>

#include <algorithm>

#include "plugin/base/log.h"
#include "plugin/transfer/recv_comm.h"

namespace beeline {
namespace {

// Grants are signalled now and then only, to take their places in the send queue back.
constexpr std::uint32_t kSignalEvery = 16;
// No receive has such a wr_id.
constexpr std::uint64_t kGrantId = std::uint64_t{1} << 63;
constexpr std::uint64_t kQuestionId = kGrantId + 1;

}  // namespace

Result<Request*> RecvComm::irecv(std::span<const ReceiveBuffer> buffers) {
  if (disturbed()) [[unlikely]] {
    if (!BL_TRY(may_begin("irecv"))) return nullptr;
  }
  if (!has_room(buffers.size())) {
    poll();
    if (!has_room(buffers.size())) return nullptr;
  }
  while (path_states().front().receives_ready - promised_ < buffers.size()) {
    BL_TRY(post_receives());
  }
  Request& request = requests_.take();
  request.line = next_;
  request.count = request.missing = static_cast<std::uint8_t>(buffers.size());
  write_lines(request, buffers);
  const auto count = static_cast<std::uint32_t>(buffers.size());
  next_ += count;
  promised_ += count;
  BL_TRY(grant(request.line, count));
  watch_.moved();
  stats_.record(Event::kGrant, count, request.line);
  return &request;
}

bool RecvComm::has_room(std::size_t lines) noexcept {
  // Two: a grant is two writes where the ring wraps.
  if (requests_.empty() || path_states().front().send_free < 2) return false;
  // Requests may be finished in any order, and a line can be used again only when its message came.
  for (std::size_t i = 0; i < lines; ++i) {
    if (owners_[(next_ + i) % wire::kMaxLines].waits) return false;
  }
  return true;
}

Status RecvComm::post_receives() {
  PathState& path = path_states().front();
  std::array<ibv_sge, kBatch> places;
  std::array<ibv_recv_wr, kBatch> receives;
  const std::uint32_t lkey = path.lkey;
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    const std::uint32_t place = (next_notice_ + i) % kReceiveDepth;
    places[i] = {.addr = reinterpret_cast<std::uint64_t>(&notices_[place]),
                 .length = sizeof(wire::Notice),
                 .lkey = lkey};
    receives[i] = {.wr_id = place,
                   .next = i + 1 < kBatch ? &receives[i + 1] : nullptr,
                   .sg_list = &places[i],
                   .num_sge = 1};
  }
  ibv_recv_wr* refused = nullptr;
  if (const int rc = ibv_post_recv(path.qp, receives.data(), &refused); rc != 0) {
    return refused_by_device(rc, "post receives");
  }
  next_notice_ = (next_notice_ + kBatch) % kReceiveDepth;
  path.receives_ready += kBatch;
  return {};
}

void RecvComm::write_lines(const Request& request,
                           std::span<const ReceiveBuffer> buffers) noexcept {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::uint32_t position = request.line + static_cast<std::uint32_t>(i);
    wire::CreditLine& line = lines_[position % wire::kMaxLines];
    line = {.address = reinterpret_cast<std::uint64_t>(buffers[i].data),
            .capacity =
                static_cast<std::uint32_t>(std::min(buffers[i].capacity, wire::kMaxMessageBytes)),
            .tag = buffers[i].tag,
            .rkeys = buffers[i].memory->rkeys,
            .number = position + 1,
            .index = static_cast<std::uint8_t>(i),
            .count = static_cast<std::uint8_t>(buffers.size()),
            .notices = 1,
            .epoch = path_states().front().epoch,
            .reserved = 0,
            .sum = 0};
    wire::seal(line);
    owners_[position % wire::kMaxLines] = {.position = position,
                                           .request = static_cast<std::uint8_t>(request.slot),
                                           .index = static_cast<std::uint8_t>(i),
                                           .waits = true};
  }
}

Status RecvComm::grant(std::uint32_t first, std::uint32_t count) {
  const std::uint32_t before_end = static_cast<std::uint32_t>(wire::kMaxLines) -
                                   first % static_cast<std::uint32_t>(wire::kMaxLines);
  const std::uint32_t head = std::min(count, before_end);
  BL_TRY(post_grant(first, head));
  return head == count ? Status() : post_grant(first + head, count - head);
}

void RecvComm::build_grant() noexcept {
  grant_sge_.lkey = path_states().front().lkey;
  grant_wr_.wr_id = kGrantId;
  grant_wr_.sg_list = &grant_sge_;
  grant_wr_.num_sge = 1;
  grant_wr_.opcode = IBV_WR_RDMA_WRITE;
  grant_wr_.wr.rdma.rkey = connection_.window.rkeys[0];
}

Status RecvComm::post_grant(std::uint32_t first, std::uint32_t count) {
  PathState& path = path_states().front();
  const std::size_t at = first % wire::kMaxLines * sizeof(wire::CreditLine);
  grant_sge_.addr = reinterpret_cast<std::uint64_t>(lines_) + at;
  grant_sge_.length = count * static_cast<std::uint32_t>(sizeof(wire::CreditLine));
  grant_wr_.send_flags = grant_sge_.length <= path.max_inline ? IBV_SEND_INLINE : 0;
  if (++silent_ == kSignalEvery) {
    grant_wr_.send_flags |= IBV_SEND_SIGNALED;
    silent_ = 0;
  }
  grant_wr_.wr.rdma.remote_addr = connection_.window.address + at;
  ibv_send_wr* refused = nullptr;
  if (const int rc = ibv_post_send(path.qp, &grant_wr_, &refused); rc != 0) {
    return refused_by_device(rc, "grant receives");
  }
  --path.send_free;
  return {};
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

void RecvComm::poll() {
  std::array<ibv_wc, 16> completions;
  for (PathState& path : path_states()) {
    for (;;) {
      const int found = ibv_poll_cq(path.cq, completions.size(), completions.data());
      if (found < 0) [[unlikely]]
        return fail_queue();
      for (int i = 0; i < found; ++i) on_completion(completions[static_cast<std::size_t>(i)]);
      if (found < static_cast<int>(completions.size())) break;
    }
  }
}

void RecvComm::on_completion(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    return suspect(completion, completion.wr_id >= kGrantId ? "grant" : "receive");
  }
  watch_.moved();
  // Not a switch: the rest of the opcodes is of no use here.
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) return on_immediate(completion);
  if (completion.opcode == IBV_WC_RECV) return on_notice(completion);
  if (completion.opcode == IBV_WC_RDMA_WRITE) return on_write(completion);
  (void)give_up(Errc::kInternal, "go on", "a completion came of something that was never posted");
}

void RecvComm::on_write(const ibv_wc& completion) noexcept {
  const bool is_answer = completion.wr_id == kQuestionId;
  path_states().front().send_free += is_answer ? 1 : kSignalEvery;
  if (is_answer) asking_ = false;
}

void RecvComm::on_immediate(const ibv_wc& completion) {
  --path_states().front().receives_ready;
  const wire::Immediate news = wire::unpack(ntohl(completion.imm_data));
  Owner& owner = owners_[news.line % wire::kMaxLines];
  if (!owner.waits || static_cast<std::uint16_t>(owner.position) != news.line ||
      completion.byte_len > lines_[news.line % wire::kMaxLines].capacity) [[unlikely]] {
    return break_protocol("the arrival of a message that no receive waits for");
  }
  arrived(owner, completion.byte_len);
}

void RecvComm::on_notice(const ibv_wc& completion) {
  --path_states().front().receives_ready;
  const wire::Notice& notice = notices_[completion.wr_id % kReceiveDepth];
  Owner& owner = owners_[notice.line % wire::kMaxLines];
  if (completion.byte_len != sizeof notice || !owner.waits || owner.position != notice.line ||
      notice.first != 0 || notice.chunks != notice.all_chunks ||
      notice.size > lines_[notice.line % wire::kMaxLines].capacity) [[unlikely]] {
    return break_protocol("a notice of a message that no receive waits for");
  }
  arrived(owner, notice.size);
}

void RecvComm::arrived(Owner& owner, std::uint32_t size) noexcept {
  owner.waits = false;
  --promised_;
  Request& request = requests_[owner.request];
  request.sizes[owner.index] = size;
  --request.missing;
  stats_.add(Counter::kMessages);
  stats_.add(Counter::kBytes, size);
}

}  // namespace beeline
