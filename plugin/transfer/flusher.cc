// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/flusher.h"

#include <algorithm>

#include "common/check/assert.h"

namespace beeline {

Flusher::Flusher(std::size_t rails, void* place)
    : rail_count_(rails),
      place_(place),
      keys_(std::make_unique<std::uint32_t[]>(kRequests * wire::kMaxReceives * rails)) {}

void Flusher::add_rail(std::size_t rail, const Loopback* loopback, std::uint32_t lkey) noexcept {
  BL_ASSERT(rail < rail_count_, "the rail is one of the comm");
  rails_[rail].loopback = loopback;
  rails_[rail].lkey = lkey;
}

void Flusher::renew_rail(std::size_t rail, const Loopback* loopback, std::uint32_t lkey) noexcept {
  BL_ASSERT(loopback != nullptr, "the rail has a loopback again");
  RailState& state = rails_[rail];
  for (std::uint16_t request = 0; request < kRequests; ++request) {
    for (; state.reads[request] != 0; --state.reads[request]) put_back(request, rail);
  }
  state.posted = 0;
  add_rail(rail, loopback, lkey);
  failed_ &= static_cast<std::uint8_t>(~bit_of(rail));
  post_waiting();
}

void Flusher::plan(std::uint16_t request, std::span<const Target> targets) noexcept {
  Plan& plan = plans_[request];
  plan.count = 0;
  for (const Target& target : targets) {
    std::copy_n(target.rkeys->begin(), rail_count_, keys_of(request, plan.count));
    plan.addresses[plan.count] = target.address;
    plan.rails[plan.count] = target.rails;
    ++plan.count;
  }
}

bool Flusher::is_same_registration(std::uint16_t request, std::size_t a, std::size_t b) noexcept {
  return std::equal(keys_of(request, a), keys_of(request, a) + rail_count_, keys_of(request, b));
}

std::uint8_t Flusher::merge(std::uint16_t request) noexcept {
  Plan& plan = plans_[request];
  std::uint8_t all = 0;
  for (std::uint8_t i = 0; i < plan.count; ++i) {
    all |= plan.rails[i];
    for (std::uint8_t earlier = 0; earlier < i; ++earlier) {
      if (!is_same_registration(request, earlier, i)) continue;
      plan.rails[earlier] |= plan.rails[i];
      plan.rails[i] = 0;
      break;
    }
  }
  return all;
}

int Flusher::reads_left(std::uint16_t request) const noexcept {
  const Plan& plan = plans_[request];
  int left = 0;
  for (std::uint8_t i = 0; i < plan.count; ++i) left += std::popcount(plan.rails[i]);
  return left;
}

// READs of one request and rail are posted and complete in the order of their targets, so those
// that failed are the last ones.
void Flusher::put_back(std::uint16_t request, std::size_t rail) noexcept {
  Plan& plan = plans_[request];
  for (std::size_t i = plan.count; i-- > 0;) {
    if ((plan.started[i] & ~plan.rails[i] & bit_of(rail)) == 0) continue;
    plan.rails[i] |= bit_of(rail);
    waiting_ |= std::uint64_t{1} << request;
    return;
  }
  BL_ASSERT(false, "a READ that was posted is one of its request's plan");
}

std::uint8_t Flusher::start(std::uint16_t request) noexcept {
  plans_[request].started = plans_[request].rails;
  const auto reads = static_cast<std::uint8_t>(reads_left(request));
  waiting_ |= std::uint64_t{1} << request;
  post_waiting();
  return reads;
}

void Flusher::post_waiting() noexcept {
  for (std::uint64_t rest = waiting_; rest != 0; rest &= rest - 1) {
    const auto request = static_cast<std::uint16_t>(std::countr_zero(rest));
    post_reads_of(request);
    if (reads_left(request) == 0) waiting_ &= ~(std::uint64_t{1} << request);
  }
}

void Flusher::post_reads_of(std::uint16_t request) noexcept {
  Plan& plan = plans_[request];
  for (std::size_t i = 0; i < plan.count; ++i) {
    for (unsigned rest = plan.rails[i]; rest != 0; rest &= rest - 1) {
      const auto rail = static_cast<std::size_t>(std::countr_zero(rest));
      if (post_read(request, i, rail)) plan.rails[i] &= static_cast<std::uint8_t>(~bit_of(rail));
    }
  }
}

// False: it waits.
bool Flusher::post_read(std::uint16_t request, std::size_t target, std::size_t rail) noexcept {
  if (is_broken(bit_of(rail)) || rails_[rail].posted == kDepth) return false;
  const std::uint64_t address = plans_[request].addresses[target];
  if (!post_read_of(rail, address, keys_of(request, target)[rail], work_id::kRead | request)) {
    failed_ |= bit_of(rail);
    return false;
  }
  ++rails_[rail].reads[request];
  return true;
}

bool Flusher::post_read_of(std::size_t rail, std::uint64_t address, std::uint32_t rkey,
                           std::uint64_t id) noexcept {
  RailState& state = rails_[rail];
  refusal_ = state.loopback->post({.opcode = IBV_WR_RDMA_READ,
                                   .local = place_,
                                   .lkey = state.lkey,
                                   .remote = address,
                                   .rkey = rkey,
                                   .bytes = 1,
                                   .id = id});
  if (refusal_ == 0) ++state.posted;
  return refusal_ == 0;
}

bool Flusher::read_for_fence(std::size_t rail, std::uint64_t address, std::uint32_t rkey,
                             FenceRead fence) noexcept {
  if (is_broken(bit_of(rail)) || rails_[rail].posted == kDepth) return false;
  return post_read_of(rail, address, rkey, fence.packed());
}

void Flusher::on_completion(std::size_t rail, std::uint16_t request, bool success) noexcept {
  --rails_[rail].posted;
  --rails_[rail].reads[request];
  if (!success) {
    failed_ |= bit_of(rail);
    put_back(request, rail);
  }
  if (waiting_ != 0) post_waiting();
}

bool Flusher::waits_for(std::size_t rail) const noexcept {
  for (std::uint64_t rest = waiting_; rest != 0; rest &= rest - 1) {
    const Plan& plan = plans_[static_cast<std::size_t>(std::countr_zero(rest))];
    for (std::uint8_t i = 0; i < plan.count; ++i) {
      if ((plan.rails[i] & bit_of(rail)) != 0) return true;
    }
  }
  return false;
}

bool Flusher::is_broken(std::uint8_t rails) const noexcept {
  return (failed_ & rails) != 0 || !has_loopbacks(rails);
}

bool Flusher::has_loopbacks(std::uint8_t rails) const noexcept {
  for (unsigned rest = rails; rest != 0; rest &= rest - 1) {
    if (!has_loopback(static_cast<std::size_t>(std::countr_zero(rest)))) return false;
  }
  return true;
}

}  // namespace beeline
