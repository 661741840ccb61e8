// SPDX-License-Identifier: Apache-2.0
//
// Making one end of a comm.
#include "plugin/connect/path/endpoint.h"

#include <algorithm>
#include <cstring>

#include "plugin/verbs/create.h"

namespace beeline {
namespace {

// The peer writes credits or data, and nothing else.
constexpr unsigned kQpAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

Result<ControlBlock> make_memory(const Device& device, const EndpointPlan& plan, ibv_pd* pd) {
  if (plan.memory_bytes == 0) return ControlBlock{};
  ControlBlock memory = BL_TRY(ControlBlock::create(plan.memory_bytes));
  const unsigned access = plan.window_bytes > 0 ? kQpAccess : unsigned{IBV_ACCESS_LOCAL_WRITE};
  BL_TRY(memory.attach(device.api(), pd, access));
  return memory;
}

// Touched, so that the pages are there.
Result<CommMemory> make_comm_memory(std::size_t bytes) {
  if (bytes == 0) return CommMemory{};
  void* const memory = ::operator new (bytes, std::align_val_t{kCommAlignment}, std::nothrow);
  if (memory == nullptr) return fail(Errc::kNoMemory, "allocate a comm");
  std::memset(memory, 0, bytes);
  return CommMemory(static_cast<std::byte*>(memory));
}

// Each work request may complete, and all of them at once when the queue pair is flushed. A device
// that holds fewer refuses; to make the queues smaller than planned would be to overrun them later.
int cq_entries(const EndpointPlan& plan) {
  return static_cast<int>(plan.send_depth + plan.receive_depth + plan.flush_depth);
}

Result<verbs::Cq> make_cq(const Device& device, const EndpointPlan& plan,
                          const ThreadDomain& domain) {
  if (domain) {
    Result<verbs::Cq> made = verbs::create_cq_in(device.api(), domain.pd(), cq_entries(plan));
    if (made) return made;
  }
  return verbs::create_cq(device.api(), device.context->raw(), cq_entries(plan));
}

Result<PathResources> make_path_in(ThreadDomain domain, const Device& device,
                                   const EndpointPlan& plan, ibv_pd* pd) {
  PathResources path;
  path.device = &device;
  path.domain = std::move(domain);
  path.queues.cq = BL_TRY(make_cq(device, plan, path.domain));
  ibv_cq* const cq = path.queues.cq.get();
  verbs::MadeQp made = BL_TRY(verbs::create_qp(device.api(), path.domain ? path.domain.pd() : pd,
                                               {.send_cq = cq,
                                                .recv_cq = cq,
                                                .send_depth = plan.send_depth,
                                                .recv_depth = plan.receive_depth,
                                                .max_inline = plan.inline_bytes}));
  path.queues.qp = std::move(made.qp);
  path.queues.max_inline = made.granted.max_inline_data;
  return path;
}

// Without the device's locks, or, where it refuses that, with them.
Result<PathResources> make_path(const Device& device, const EndpointPlan& plan,
                                const QpOptions& options, ibv_pd* pd) {
  ThreadDomain domain = ThreadDomain::make(*device.context, pd, options.thread_domains);
  if (domain) {
    Result<PathResources> path = make_path_in(std::move(domain), device, plan, pd);
    if (path) return path;
  }
  return make_path_in({}, device, plan, pd);
}

}  // namespace

Result<Endpoint> Endpoint::create(const Device& device, const EndpointPlan& plan,
                                  const QpOptions& options) {
  ibv_pd* const pd = BL_TRY(device.context->pd());
  Endpoint made;
  made.wants_ece_ = options.ece;
  made.memory_ = BL_TRY(make_memory(device, plan, pd));
  made.comm_ = BL_TRY(make_comm_memory(plan.comm_bytes));
  made.window_bytes_ = std::min(plan.window_bytes, made.memory_.size());
  made.path_ = BL_TRY(make_path(device, plan, options, pd));
  made.psn_ = verbs::random_psn();
  return made;
}

std::optional<ibv_ece> Endpoint::ece() const {
  if (!wants_ece_) return std::nullopt;
  const Result<ibv_ece> ece = verbs::query_ece(path_.queues.qp);
  // No vendor: the device has none.
  if (!ece || ece->vendor_id == 0) return std::nullopt;
  return *ece;
}

wire::Window Endpoint::window() const noexcept {
  wire::Window window;
  if (window_bytes_ == 0) return window;
  window.address = memory_.address();
  window.length = window_bytes_;
  for (std::size_t rail = 0; rail < memory_.rails(); ++rail) {
    window.rkeys[rail] = memory_.rkey(rail);
  }
  return window;
}

Status Endpoint::connect(const Route& route, const QpOptions& options) {
  // In RESET, and once: a try that failed has left that state. Without it the queue pair works,
  // too.
  if (route.ece && wants_ece_ && !ece_is_set_) {
    ece_is_set_ = verbs::set_ece(path_.queues.qp, *route.ece).has_value();
  }
  path_.own = route.own;
  const std::uint8_t port = device().port;
  BL_TRY(verbs::to_init(path_.queues.qp,
                        {.port = port, .pkey_index = route.pkey_index, .access = kQpAccess}));
  BL_TRY(verbs::to_rtr(path_.queues.qp, {.mtu = route.mtu,
                                         .dest_qpn = route.peer_qpn,
                                         .rq_psn = route.peer_psn,
                                         .path = route.path,
                                         .max_dest_rd_atomic = route.reads,
                                         .min_rnr_timer = options.min_rnr_timer}));
  return verbs::to_rts(path_.queues.qp, {.sq_psn = psn_,
                                         .timeout = options.timeout,
                                         .retry_cnt = options.retry_count,
                                         .rnr_retry = options.rnr_retry,
                                         .max_rd_atomic = route.reads});
}

Connection Endpoint::finish(Role role, const wire::Window& peer_window, Notify notify,
                            const wire::QpFacts& peer) && {
  Connection connection;
  connection.role = role;
  connection.memory = std::move(memory_);
  connection.comm = std::move(comm_);
  connection.window = {
      .address = peer_window.address, .length = peer_window.length, .rkeys = peer_window.rkeys};
  path_.notify = notify;
  path_.peer_qpn = peer.qpn;
  path_.peer_device = peer.device + ":" + std::to_string(peer.port);
  connection.paths.push_back(std::move(path_));
  return connection;
}

}  // namespace beeline
