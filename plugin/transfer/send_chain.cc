// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/send_chain.h"

#include <algorithm>

namespace beeline {

int SendChain::write(const ibv_sge& source, std::uint64_t address, std::uint32_t rkey) noexcept {
  const std::uint32_t most = path_.most_bytes;
  for (std::uint32_t at = 0; at < source.length; at += std::min(most, source.length - at)) {
    const std::uint32_t length = std::min(most, source.length - at);
    const int rc =
        add(IBV_WR_RDMA_WRITE, {.addr = source.addr + at, .length = length, .lkey = source.lkey});
    if (rc != 0) return rc;
    chain_[count_ - 1].wr.rdma = {.remote_addr = address + at, .rkey = rkey};
    bytes_ += length;
  }
  return 0;
}

int SendChain::end_with_notice(const wire::Notice& notice, wire::Notice& place) noexcept {
  const bool is_inline = sizeof notice <= path_.max_inline;
  if (!is_inline) place = notice;
  const ibv_sge sge = {.addr = reinterpret_cast<std::uint64_t>(is_inline ? &notice : &place),
                       .length = sizeof notice,
                       .lkey = path_.lkey};
  if (const int rc = add(IBV_WR_SEND, sge); rc != 0) return rc;
  if (is_inline) chain_[count_ - 1].send_flags = IBV_SEND_INLINE;
  return end();
}

int SendChain::end_with_write() noexcept { return end(); }

int SendChain::add(ibv_wr_opcode opcode, const ibv_sge& sge) noexcept {
  if (count_ == kMost) {
    if (const int rc = post(); rc != 0) return rc;
  }
  sges_[count_] = sge;
  chain_[count_] = {};
  chain_[count_].sg_list = &sges_[count_];
  chain_[count_].num_sge = 1;
  chain_[count_].opcode = opcode;
  if (count_ > 0) chain_[count_ - 1].next = &chain_[count_];
  ++count_;
  ++wrs_;
  return 0;
}

int SendChain::end() noexcept {
  ibv_send_wr& last = chain_[count_ - 1];
  last.send_flags |= IBV_SEND_SIGNALED;
  last.wr_id = SendId{.slot = slot_, .wrs = wrs_, .bytes = bytes_}.packed();
  return post();
}

int SendChain::post() noexcept {
  ibv_send_wr* refused = nullptr;
  path_.send_free -= static_cast<std::uint32_t>(count_);
  count_ = 0;
  return ibv_post_send(path_.qp, chain_.data(), &refused);
}

}  // namespace beeline
