// SPDX-License-Identifier: Apache-2.0
//
// Flushes of GPU memory: data that a NIC has written to a GPU may still be on its way there when
// its completion is polled.
#include <algorithm>

#include "common/base/log.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/verbs/text.h"

namespace beeline {

// If no queue pair can be connected to the port itself, or a READ on it fails, the CUDA driver
// flushes instead. If the driver cannot, this fails.
Status RecvComm::prepare_flush(const gdr::FlushNeed& need) {
  if (!need.any) return {};
  flushed_gpus_.fetch_or(need.owner, std::memory_order_acq_rel);
  const std::lock_guard lock(preparing_);
  if (flusher_ == nullptr) {
    PathResources& path = connection_.paths.front();
    ibv_pd* const pd = path.domain ? path.domain.pd() : BL_TRY(path.device->context->pd());
    auto loopback = Loopback::make(*path.device, {.pd = pd,
                                                  .cq = path.queues.cq.get(),
                                                  .depth = Flusher::kDepth,
                                                  .gid = gid_,
                                                  .pkey_index = pkey_index_});
    if (!loopback && !need.by_host) {
      BL_WARN("%s: data received into GPU memory cannot be flushed: %s", name_for_log().c_str(),
              loopback.error().text.c_str());
      const Problem& problem = loopback.error();
      return fail(problem.code, "connect the port to itself", problem.sys_errno);
    }
    if (loopback) {
      path.queues.loopback = *std::move(loopback);
    } else {
      BL_INFO(kLogNet, "%s: the CUDA driver flushes GPU memory, because the NIC cannot: %s",
              name_for_log().c_str(), loopback.error().text.c_str());
    }
    flusher_ = std::make_unique<Flusher>(path.queues.loopback ? &*path.queues.loopback : nullptr,
                                         connection_.memory.at<std::byte>(kFlushedAt),
                                         connection_.memory.lkey(0));
  }
  if (need.in_test) flushes_in_test_.store(true, std::memory_order_release);
  return {};
}

Errc RecvComm::iflush(std::span<const FlushTarget> targets, void** request) {
  if (targets.empty()) return Errc::kOk;
  gate_.enter();
  if (gate_.is_alarmed()) {
    gate_.wait_until_returned();  // iflush has no way to answer "call again"
    if (const Status status = events_.on_alarm(*this); !status) {
      return leave_with(status.error().code);
    }
  }
  if (flusher_ == nullptr) return leave_with(Errc::kInvalid);  // the memory is another comm's
  if (flusher_->is_broken()) return leave_with(flush_by_host("the NIC cannot read the GPU memory"));
  if (free_flushes_.empty()) set_flushes_apart();
  if (free_flushes_.empty()) {
    return leave_with(events_.on_fault(*this, Errc::kInternal, "flush GPU memory",
                                       "too many requests are under way"));
  }
  Request& made = free_flushes_.take();
  made.count = 1;
  made.missing = 0;
  made.sizes[0] = 0;
  *request = &made;
  Flusher::Plan plan;
  plan_reads(plan, made.slot, targets);
  start_reads(made, plan);
  return Errc::kOk;
}

// Moves the free requests that belong to flushes to a list of their own.
void RecvComm::set_flushes_apart() noexcept {
  FreeRequests rest;
  while (!free_requests_.empty()) {
    Request& free = free_requests_.take();
    (free.slot >= kFirstForFlushes ? free_flushes_ : rest).give_back(free);
  }
  free_requests_ = rest;
}

void RecvComm::flush_before_done(void* request, std::span<const FlushTarget> targets) {
  if (targets.empty()) return;
  Request& receive = *static_cast<Request*>(request);
  plan_reads(flusher_->plan(receive.slot), receive.slot, targets);
  ++receive.missing;
}

// One READ for each registration: it flushes all data written to that registration.
void RecvComm::plan_reads(Flusher::Plan& plan, std::uint16_t request,
                          std::span<const FlushTarget> targets) noexcept {
  plan.count = 0;
  for (const FlushTarget& target : targets) {
    const std::uint32_t rkey = target.memory->rkeys[0];
    const auto end = plan.reads.begin() + plan.count;
    if (std::any_of(plan.reads.begin(), end, [&](const auto& read) { return read.rkey == rkey; })) {
      continue;
    }
    plan.reads[plan.count++] = {
        .address = reinterpret_cast<std::uint64_t>(target.data), .rkey = rkey, .request = request};
  }
}

void RecvComm::start_reads(Request& request, const Flusher::Plan& plan) {
  const bool was_broken = flusher_->is_broken();
  request.missing = plan.count;
  for (std::uint8_t i = 0; i < plan.count; ++i) flusher_->add(plan.reads[i]);
  if (was_broken || flusher_->is_broken())
    flush_all_by_host("the NIC did not accept a READ of the GPU memory");
}

// Starts the READs of receives whose data has arrived, and which wait for nothing else.
void RecvComm::flush_arrived() {
  flusher_->each_planned([this](std::uint16_t slot) {
    if (requests_[slot].missing != 1) return false;
    start_reads(requests_[slot], flusher_->plan_of(slot));
    return true;
  });
}

void RecvComm::on_flush(const ibv_wc& completion) {
  watch_.moved();
  const bool was_broken = flusher_->is_broken();
  const bool is_read = completion.status == IBV_WC_SUCCESS;
  flusher_->on_completion(is_read);
  if (!was_broken && flusher_->is_broken()) {
    flush_all_by_host(verbs::wc_status_text(completion.status));
  }
  if (is_read || host_flushes_) --requests_[Flusher::request_of(completion.wr_id)].missing;
}

// The driver's flush covers all data that has arrived, so no READ is waited for any more.
void RecvComm::flush_all_by_host(const char* why) {
  host_flushes_ = flush_by_host(why) == Errc::kOk;
  if (!host_flushes_) return;
  flusher_->drop_waiting([&](std::uint16_t request) { --requests_[request].missing; });
}

Errc RecvComm::flush_by_host(const char* why) {
  const std::uint64_t owners = flushed_gpus_.load(std::memory_order_acquire);
  if (gpus_ != nullptr && gpus_->flush_by_host(owners)) return Errc::kOk;
  return events_.on_fault(*this, Errc::kSystem, "make received data visible to the GPU", why);
}

}  // namespace beeline
