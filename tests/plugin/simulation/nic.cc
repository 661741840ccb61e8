// SPDX-License-Identifier: Apache-2.0
//
// A device works by itself: it sends, answers, retries and completes.
#include "tests/plugin/simulation/nic.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace beeline::simulation {
namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;
constexpr std::int64_t kPlacedBefore = kUs;  // from the data to its completion
// From the state ERROR to the completions of what was posted, which come behind all that had
// arrived.
constexpr std::int64_t kFlushedAfter = 10 * kUs;
constexpr std::int64_t kReceiveWait = 640 * kUs;
constexpr std::size_t kMostUnanswered = 64;  // work requests

std::int32_t distance(std::uint32_t from, std::uint32_t to) noexcept {
  const std::uint32_t ahead = (to - from) & kPsnMask;
  return ahead < (kPsnMask + 1) / 2 ? static_cast<std::int32_t>(ahead)
                                    : static_cast<std::int32_t>(ahead) - (1 << 24);
}

bool takes_receive(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND;
}

ibv_wc_opcode completed_as(ibv_wr_opcode opcode) noexcept {
  if (opcode == IBV_WR_RDMA_READ) return IBV_WC_RDMA_READ;
  return opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
}

}  // namespace

struct Nic::Packet {
  std::uint32_t psn = 0;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  bool is_last = true;
  std::uint32_t imm = 0;
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;        // of this packet
  std::uint32_t whole_length = 0;  // of the work request
  Content content = {};
};

Nics::Nics(Agenda& agenda, Network& network, Payload& payload)
    : agenda_(agenda), network_(network), payload_(payload) {}

Nic& Nics::add(std::string name, std::uint32_t mbps) {
  nics_.push_back(std::make_unique<Nic>(*this, static_cast<std::uint32_t>(nics_.size() + 1),
                                        std::move(name), mbps));
  return *nics_.back();
}

Nic* Nics::find_nic(const std::array<std::uint8_t, 16>& gid) noexcept {
  for (const auto& nic : nics_) {
    if (nic->gid_ == gid && !nic->is_removed_) return nic.get();
  }
  return nullptr;
}

std::size_t Nics::objects() const noexcept {
  std::size_t sum = 0;
  for (const auto& nic : nics_) sum += nic->objects();
  return sum;
}

void Nics::violate(std::string why) {
  if (violation_.empty()) violation_ = std::move(why);
}

Nic::Nic(Nics& nics, std::uint32_t number, std::string name, std::uint32_t mbps)
    : nics_(nics),
      number_(number),
      name_(std::move(name)),
      port_(nics.network_.add_port(mbps)),
      // ::ffff:10.0.0.0/8
      gid_{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, static_cast<std::uint8_t>(number), 1} {}

void Nic::drop_queues() noexcept {
  for (NicQp*& qp : nics_.qps_) {
    if (qp != nullptr && qp->nic == this) qp = nullptr;
  }
}

void Nic::change_gid() noexcept { ++gid_[15]; }

bool Nic::is_active() const noexcept { return !is_removed_ && nics_.network_.is_up(port_); }

void Nic::remove() noexcept {
  is_removed_ = true;
  nics_.payload_.reveal(number_);  // what it had under way is written by now
  nics_.network_.set_up(port_, false);
}

const NicRegion* Nic::region_of(std::uint32_t key, std::uint64_t address,
                                std::uint64_t length) const noexcept {
  const std::uint32_t index = (key - Nics::kFirstKey) / Nics::kKeyStep;
  if (index >= nics_.regions_.size()) return nullptr;
  const NicRegion* const region = nics_.regions_[index].get();
  if (region == nullptr || region->rkey != key || region->nic != this) return nullptr;
  const auto start = reinterpret_cast<std::uint64_t>(region->addr);
  const bool is_inside = address >= start && address - start <= region->length &&
                         length <= region->length - (address - start);
  return is_inside ? region : nullptr;
}

// --- The requester ---

Content Nic::read_local(const SendEntry& entry, std::uint64_t offset, std::uint32_t length) const {
  Content content;
  if (length == 0) return content;
  if (entry.is_inline) return entry.copied;
  const std::uint64_t address = entry.local.addr + offset;
  if (Payload::contains(address)) {
    content.is_payload = true;
    content.piece = nics_.payload_.read(address, length);
    return content;
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(address);
  content.bytes.assign(bytes, bytes + length);
  return content;
}

void Nic::transmit(NicQp& qp) {
  if (qp.state != IBV_QPS_RTS || qp.waits_for_receive || is_removed_) return;
  while (qp.transmitted < qp.sends.size() && qp.transmitted < kMostUnanswered) {
    SendEntry& entry = qp.sends[qp.transmitted];
    const bool has_data = entry.local.length != 0 && !entry.is_inline;
    if (has_data && region_of(entry.local.lkey, entry.local.addr, entry.local.length) == nullptr) {
      // All before it are complete, or it waits for that.
      if (qp.transmitted == 0) fail_first(qp, IBV_WC_LOC_PROT_ERR);
      return;
    }
    for (std::uint32_t i = 0; i < entry.packets; ++i) {
      if (distance(qp.unacked_psn, entry.first_psn + i) >= 0) transmit_one(qp, entry, i);
    }
    ++qp.transmitted;
  }
  start_timer(qp);
}

void Nic::transmit_one(NicQp& qp, SendEntry& entry, std::uint32_t index) {
  const std::uint32_t whole = entry.local.length;
  const std::uint32_t each = whole / entry.packets;
  const std::uint32_t offset = index * each;
  const bool is_last = index + 1 == entry.packets;
  Packet packet = {.psn = (entry.first_psn + index) & kPsnMask,
                   .opcode = entry.opcode,
                   .is_last = is_last,
                   .imm = entry.imm,
                   .remote = entry.remote + offset,
                   .rkey = entry.rkey,
                   .length = is_last ? whole - offset : each,
                   .whole_length = whole};
  if (entry.opcode != IBV_WR_RDMA_READ) {
    packet.content = read_local(entry, offset, packet.length);
  }
  const std::uint64_t bytes = entry.opcode == IBV_WR_RDMA_READ ? 0 : packet.length;
  nics_.network_.send(
      port_, qp.peer_port, bytes,
      [&nics = nics_, qpn = qp.peer_qpn, to = qp.peer_port, packet = std::move(packet)] {
        NicQp* const peer = nics.find_qp(qpn);
        if (peer != nullptr && peer->nic->port_ == to) {
          peer->nic->arrive(*peer, packet);
        }
      });
}

void Nic::start_timer(NicQp& qp) {
  if (qp.has_timer || qp.transmitted == 0 || qp.timeout_ns == 0) return;
  qp.has_timer = true;
  qp.progress_ns = nics_.agenda_.now();
  nics_.agenda_.in(qp.timeout_ns, [&nics = nics_, qpn = qp.qp_num] {
    if (NicQp* const there = nics.find_qp(qpn)) there->nic->on_timer(*there);
  });
}

void Nic::on_timer(NicQp& qp) {
  qp.has_timer = false;
  if (qp.state != IBV_QPS_RTS || qp.transmitted == 0) return;
  const std::int64_t quiet = nics_.agenda_.now() - qp.progress_ns;
  if (quiet < qp.timeout_ns) {
    qp.has_timer = true;
    nics_.agenda_.in(qp.timeout_ns - quiet, [&nics = nics_, qpn = qp.qp_num] {
      if (NicQp* const there = nics.find_qp(qpn)) there->nic->on_timer(*there);
    });
    return;
  }
  if (is_removed_) return;  // a device that is gone completes nothing
  if (qp.retries_left == 0) return fail_first(qp, IBV_WC_RETRY_EXC_ERR);
  --qp.retries_left;
  repeat_from(qp, qp.unacked_psn);
}

void Nic::repeat_from(NicQp& qp, std::uint32_t psn) {
  if (distance(qp.unacked_psn, psn) > 0) on_acknowledged(qp, psn - 1);
  if (qp.state != IBV_QPS_RTS) return;
  qp.transmitted = 0;
  transmit(qp);
}

void Nic::on_acknowledged(NicQp& qp, std::uint32_t psn) {
  if (qp.state != IBV_QPS_RTS || distance(qp.unacked_psn, psn) < 0) return;
  qp.progress_ns = nics_.agenda_.now();
  qp.retries_left = qp.retries;
  while (!qp.sends.empty() && qp.transmitted != 0) {
    const SendEntry& first = qp.sends.front();
    const std::uint32_t last_psn = first.first_psn + first.packets - 1;
    const bool is_read = first.opcode == IBV_WR_RDMA_READ;
    // The answer to a READ may have come before that to the one before it.
    const bool is_done = is_read ? first.is_answered : distance(last_psn, psn) >= 0;
    if (!is_done) {
      if (!is_read && distance(first.first_psn, psn) >= 0) qp.unacked_psn = (psn + 1) & kPsnMask;
      break;
    }
    qp.unacked_psn = (last_psn + 1) & kPsnMask;
    const SendEntry done = std::move(qp.sends.front());
    if (hazards_.next_status != IBV_WC_SUCCESS) {
      qp.sends.front() = done;
      return fail_first(qp, std::exchange(hazards_.next_status, IBV_WC_SUCCESS));
    }
    qp.sends.pop_front();
    --qp.transmitted;
    if (done.is_signaled) complete_send(qp, done, IBV_WC_SUCCESS);
  }
  transmit(qp);
}

void Nic::on_read_answered(NicQp& qp, std::uint32_t psn, const Content& content) {
  if (qp.state != IBV_QPS_RTS) return;
  const auto read = std::ranges::find_if(qp.sends, [&](const SendEntry& entry) {
    return entry.first_psn == psn && entry.opcode == IBV_WR_RDMA_READ;
  });
  if (read == qp.sends.end() || read->is_answered) return;
  if (!content.bytes.empty()) (void)place(read->local.addr, content);
  nics_.payload_.reveal(number_);
  read->is_answered = true;
  on_acknowledged(qp, psn);
}

void Nic::complete_send(NicQp& qp, const SendEntry& entry, ibv_wc_status status) {
  ibv_wc done = {};
  done.wr_id = entry.wr_id;
  done.status = status;
  done.opcode = completed_as(entry.opcode);
  done.qp_num = qp.qp_num;
  push(*qp.sends_to, done);
}

void Nic::push(NicCq& cq, const ibv_wc& entry) {
  if (cq.entries.size() >= cq.most) return nics_.violate("a completion queue has overflowed");
  cq.entries.push_back(entry);
  ++completions_;
  if (on_completion_) on_completion_();
}

void Nic::fail_first(NicQp& qp, ibv_wc_status status) {
  qp.state = IBV_QPS_ERR;
  if (!qp.sends.empty()) {
    const SendEntry first = std::move(qp.sends.front());
    qp.sends.pop_front();
    complete_send(qp, first, status);
  }
  flush(qp);
}

void Nic::flush(NicQp& qp) {
  qp.state = IBV_QPS_ERR;
  qp.transmitted = 0;
  nics_.agenda_.in(kFlushedAfter, [&nics = nics_, qpn = qp.qp_num] {
    NicQp* const there = nics.find_qp(qpn);
    if (there != nullptr) there->nic->complete_flushed(*there);
  });
}

void Nic::complete_flushed(NicQp& qp) {
  for (; !qp.sends.empty(); qp.sends.pop_front()) {
    complete_send(qp, qp.sends.front(), IBV_WC_WR_FLUSH_ERR);
  }
  for (; !qp.receives.empty(); qp.receives.pop_front(), qp.receive_places.pop_front()) {
    if (hazards_.swallows_receives) continue;
    ibv_wc done = {};
    done.wr_id = qp.receives.front().wr_id;
    done.status = IBV_WC_WR_FLUSH_ERR;
    done.opcode = IBV_WC_RECV;
    done.qp_num = qp.qp_num;
    push(*qp.receives_to, done);
  }
}

// --- The responder ---

template <class Answer>
void Nic::send_answer(NicQp& qp, Answer&& answer, std::uint64_t bytes) {
  nics_.network_.send(
      port_, qp.peer_port, bytes,
      [&nics = nics_, qpn = qp.peer_qpn, to = qp.peer_port, answer = std::forward<Answer>(answer)] {
        NicQp* const peer = nics.find_qp(qpn);
        if (peer != nullptr && peer->nic->port_ == to) answer(*peer);
      });
}

void Nic::acknowledge(NicQp& qp, std::uint32_t psn) {
  send_answer(qp, [psn](NicQp& peer) { peer.nic->on_acknowledged(peer, psn); });
}

void Nic::arrive(NicQp& qp, const Packet& packet) {
  const bool is_ready = qp.state == IBV_QPS_RTR || qp.state == IBV_QPS_RTS || qp.is_falsely_fenced;
  if (!is_ready || is_removed_) return;
  if (packet.opcode == IBV_WR_RDMA_READ && hazards_.answers_no_reads) return;
  const std::int32_t ahead = distance(qp.expected_psn, packet.psn);
  if (ahead < 0) {  // it has come before
    if (packet.opcode == IBV_WR_RDMA_READ) return answer_read(qp, packet);
    return acknowledge(qp, (qp.expected_psn - 1) & kPsnMask);
  }
  if (ahead == 0) return take_next(qp, packet);
  if (std::exchange(qp.has_complained, true)) return;
  send_answer(qp, [psn = qp.expected_psn](NicQp& peer) { peer.nic->repeat_from(peer, psn); });
}

void Nic::answer_read(NicQp& qp, const Packet& packet) {
  const NicRegion* const region = region_of(packet.rkey, packet.remote, packet.whole_length);
  if (region == nullptr || (region->access & IBV_ACCESS_REMOTE_READ) == 0) return;
  Content content;
  if (!Payload::contains(packet.remote)) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(packet.remote);
    content.bytes.assign(bytes, bytes + packet.whole_length);
  }
  send_answer(
      qp,
      [psn = packet.psn, content](NicQp& peer) { peer.nic->on_read_answered(peer, psn, content); },
      packet.whole_length);
}

void Nic::take_next(NicQp& qp, const Packet& packet) {
  const bool is_read = packet.opcode == IBV_WR_RDMA_READ;
  const unsigned need = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  if (packet.length != 0 && packet.opcode != IBV_WR_SEND) {
    const NicRegion* const region = region_of(packet.rkey, packet.remote, packet.length);
    const bool is_refused = hazards_.refuses_data && Payload::contains(packet.remote);
    if (region == nullptr || (region->access & qp.access & need) == 0 || is_refused) {
      send_answer(qp, [](NicQp& peer) {
        if (peer.state == IBV_QPS_RTS) peer.nic->fail_first(peer, IBV_WC_REM_ACCESS_ERR);
      });
      return flush(qp);
    }
  }
  const bool lacks_receive = takes_receive(packet.opcode) && qp.receives.empty();
  if (packet.is_last && lacks_receive && qp.state != IBV_QPS_ERR) {
    // "Receiver not ready": the requester tries again after a while. The plugin has a receive for
    // every message that may come; only after several failures at once, it may lack one.
    if (nics_.is_calm_) nics_.violate("a message finds no receive posted at " + name_);
    return send_answer(qp, [psn = packet.psn](NicQp& peer) {
      if (peer.state != IBV_QPS_RTS || std::exchange(peer.waits_for_receive, true)) return;
      peer.progress_ns = peer.nic->nics_.agenda_.now();
      peer.nic->nics_.agenda_.in(kReceiveWait, [&nics = peer.nic->nics_, qpn = peer.qp_num, psn] {
        NicQp* const there = nics.find_qp(qpn);
        if (there == nullptr) return;
        there->waits_for_receive = false;
        there->nic->repeat_from(*there, psn);
      });
    });
  }
  qp.expected_psn = (packet.psn + 1) & kPsnMask;
  qp.has_complained = false;
  if (is_read) return answer_read(qp, packet);
  const bool is_kept = !hazards_.discards;
  if (is_kept && packet.length != 0 && (packet.opcode != IBV_WR_SEND || !lacks_receive)) {
    const std::uint64_t where =
        packet.opcode == IBV_WR_SEND ? qp.receive_places.front().addr : packet.remote;
    if (!place(where, packet.content)) return;
  }
  if (packet.is_last && takes_receive(packet.opcode) && !lacks_receive && is_kept) {
    complete_receive(qp, packet, packet.whole_length);
  }
  if (packet.is_last) acknowledge(qp, packet.psn);
}

bool Nic::place(std::uint64_t address, const Content& content) {
  if (on_completion_) on_completion_();
  if (content.is_payload) {
    if (!Payload::contains(address)) {
      nics_.violate("payload is written to memory of the plugin");
      return false;
    }
    std::string why = nics_.payload_.write(address, content.piece, number_);
    if (why.empty()) return true;
    nics_.violate(std::move(why));
    return false;
  }
  if (Payload::contains(address)) {
    nics_.violate("bytes that are no payload are written to a buffer");
    return false;
  }
  std::memcpy(reinterpret_cast<void*>(address), content.bytes.data(), content.bytes.size());
  return true;
}

void Nic::complete_receive(NicQp& qp, const Packet& packet, std::uint32_t bytes) {
  ibv_wc done = {};
  done.wr_id = qp.receives.front().wr_id;
  done.status = IBV_WC_SUCCESS;
  done.opcode = packet.opcode == IBV_WR_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  done.byte_len = bytes;
  done.qp_num = qp.qp_num;
  if (packet.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    done.wc_flags = IBV_WC_WITH_IMM;
    done.imm_data = packet.imm;
  }
  qp.receives.pop_front();
  qp.receive_places.pop_front();
  if (hazards_.loses_completions) return;
  qp.arrived.push_back(done);
  nics_.agenda_.in(kPlacedBefore, [&nics = nics_, qpn = qp.qp_num] {
    NicQp* const there = nics.find_qp(qpn);
    if (there == nullptr || there->arrived.empty()) return;
    const ibv_wc first = there->arrived.front();
    there->arrived.pop_front();
    there->nic->push(*there->receives_to, first);
  });
}

}  // namespace beeline::simulation
