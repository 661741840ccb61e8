// SPDX-License-Identifier: Apache-2.0
//
// The steps of a call.
#include "plugin/connect/cm/cm_call.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/connect/channel/identity.h"
#include "plugin/connect/cm/cm_steps.h"
#include "plugin/connect/socket/address.h"

namespace beeline {
namespace {

// No event tells of a completion on a queue that is only polled.
constexpr std::int64_t kLookAgainNs = kNsPerMs;
// The connection manager chooses our port without asking TCP, which iWARP devices share it with.
constexpr int kConnectAttempts = 8;
// Of one try to resolve. The kernel waits for news from the neighbour's table, and where it misses
// them, for the end of this time: it must be short, and tried again.
constexpr int kResolveMs = 500;

// The attempt's deadline ends the tries.
bool is_slow(const verbs::CmEvent& event) noexcept { return event.status == -ETIMEDOUT; }

}  // namespace

// --- Both sides ---

CmCall::~CmCall() { hub_->forget(id_.key()); }

const char* CmCall::waits_for() const noexcept {
  switch (step_) {
    case Step::kAddress: return "the peer's address to be resolved";
    case Step::kRoute: return "the route to be resolved";
    case Step::kConnect: return "the peer's answer to the connection request";
    case Step::kRequest: return "the peer's connection request";
    case Step::kGreeting: return "the first message over the new connection";
  }
  return "";
}

std::string CmCall::overdue_text(const std::string& limit) const {
  std::string text = "librdmacm, between " + ends_.text() + ", waited in vain for " + waits_for() +
                     (limit.empty() ? "" : " " + limit);
  if (step_ == Step::kAddress || step_ == Step::kRoute) text += "; " + route_advice(ends_);
  return text;
}

rdma_conn_param CmCall::parameters(std::uint8_t reads) const noexcept {
  rdma_conn_param param = {};
  param.responder_resources = reads;
  param.initiator_depth = reads;
  param.flow_control = 1;
  param.retry_count = options_->retry_count;
  param.rnr_retry_count = options_->rnr_retry;
  param.qp_num = endpoint_->qpn();
  return param;
}

void CmCall::take_id(verbs::CmId id) {
  hub_->forget(id_.key());
  id_ = std::move(id);
  hub_->watch(id_, [self = weak_from_this()](const verbs::CmEvent& event) {
    if (const auto call = self.lock()) call->on_event(event);
  });
}

void CmCall::await_greeting() {
  step_ = Step::kGreeting;
  id_.mark_connected();
  look_for_greeting();
}

void CmCall::look_for_greeting() {
  const auto greeted = has_greeted(endpoint_->cq());
  if (!greeted) {
    return finish(fail("librdmacm, between " + ends_.text() + ": " + greeted.error()));
  }
  if (!*greeted) {
    return hub_->poller().at(now_ns() + kLookAgainNs, [self = weak_from_this()] {
      const auto call = self.lock();
      if (call != nullptr && call->done_ != nullptr) call->look_for_greeting();
    });
  }
  BL_INFO(kLogNet, "librdmacm has connected queue pair %u, between %s", endpoint_->qpn(),
          ends_.text().c_str());
  hub_->forget(id_.key());
  endpoint_->adopt(std::move(id_));
  finish({});
}

void CmCall::finish(Result<void, std::string> outcome) {
  const Done done = std::exchange(done_, nullptr);
  if (done != nullptr) done(std::move(outcome));
}

void CmCall::fail_step(const Error& error) { finish(fail(step_failure_text(error, ends_))); }

void CmCall::fail_event(const verbs::CmEvent& event) {
  const std::string doing = std::string("waiting for ") + waits_for();
  finish(fail(event_failure_text(event, doing.c_str(), ends_)));
}

// --- The connecting side ---

CmDial::CmDial(CmHub& hub, Endpoint& endpoint, const QpOptions& options, Target target, Done done)
    : CmCall(
          hub, endpoint, options,
          {.device = &endpoint.device(), .theirs = target.invitation.address, .peer = target.peer},
          std::move(done)),
      target_(std::move(target)) {}

void CmDial::start() {
  const auto begun = begin();
  if (!begun) finish(fail(begun.error()));
}

Result<void, std::string> CmDial::choose_addresses() {
  const auto addresses = BL_TRY(hub_->addresses(endpoint_->device()));
  const NetdevAddress* const chosen = choose_address(addresses, {&target_.invitation.address, 1});
  if (chosen == nullptr) {
    const bool is_ipv4 = ends_.theirs.kind == wire::AddressKind::kIpv4;
    return fail(std::string("the peer's end is at an ") + (is_ipv4 ? "IPv4" : "IPv6") +
                " address, " + text(ends_.theirs) + " (" + ends_.peer + "), and " +
                endpoint_->device().netdev + " has none of that kind");
  }
  ends_.ours = chosen->address;
  // The peer's number of its interface says nothing here.
  ends_.theirs.scope = is_link_local(ends_.theirs) ? chosen->address.scope : 0;
  return {};
}

Result<void, std::string> CmDial::begin() {
  step_ = Step::kAddress;
  BL_TRY(choose_addresses());
  take_id(BL_TRY(hub_->make_id()));
  if (target_.traffic_class != 0) (void)id_.set_tos(target_.traffic_class);
  const KernelAddress from = to_kernel(ends_.ours);
  const KernelAddress to = to_kernel(ends_.theirs);
  const Status begun = id_.resolve_address(from.get(), to.get(), kResolveMs);
  if (!begun) return fail(step_failure_text(begun.error(), ends_));
  return {};
}

void CmDial::connect() {
  if (const auto right = check_device(id_, endpoint_->device(), ends_.ours); !right) {
    return finish(fail(right.error()));
  }
  step_ = Step::kConnect;
  if (const Status ready = cm_to_init(endpoint_->qp(), id_); !ready) {
    return fail_step(ready.error());
  }
  rdma_conn_param param = parameters(target_.reads);
  const wire::Token& cookie = target_.invitation.cookie;
  param.private_data = cookie.data();
  param.private_data_len = static_cast<std::uint8_t>(cookie.size());
  const Status connecting = id_.connect(param);
  if (connecting) return;
  if (connecting.error().sys_errno == EADDRINUSE && ++attempts_ < kConnectAttempts) {
    return start();
  }
  fail_step(connecting.error());
}

void CmDial::on_event(const verbs::CmEvent& event) {
  // Not a switch: the library may know more types than we do.
  Status status;
  if (event.type == RDMA_CM_EVENT_ADDR_RESOLVED && step_ == Step::kAddress) {
    step_ = Step::kRoute;
    status = id_.resolve_route(kResolveMs);
  } else if (event.type == RDMA_CM_EVENT_ADDR_ERROR && is_slow(event)) {
    return start();
  } else if (event.type == RDMA_CM_EVENT_ROUTE_ERROR && is_slow(event)) {
    status = id_.resolve_route(kResolveMs);
  } else if (event.type == RDMA_CM_EVENT_ROUTE_RESOLVED && step_ == Step::kRoute) {
    return connect();
  } else if (event.type == RDMA_CM_EVENT_CONNECT_RESPONSE && step_ == Step::kConnect) {
    status = cm_to_rts(endpoint_->qp(), id_, *options_);
    if (status) status = id_.establish();
    if (status) status = post_greeting(endpoint_->qp(), endpoint_->memory());
    if (status) return await_greeting();
  } else if (event.type == RDMA_CM_EVENT_ESTABLISHED && step_ == Step::kConnect) {
    status = post_greeting(endpoint_->qp(), endpoint_->memory());
    if (status) return await_greeting();
  } else if (event.type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
    return fail_event(event);
  }
  if (!status) fail_step(status.error());
}

// --- The accepting side ---

CmAnswer::CmAnswer(CmHub& hub, Endpoint& endpoint, const QpOptions& options, std::string peer,
                   Done done)
    : CmCall(hub, endpoint, options, {.device = &endpoint.device(), .peer = std::move(peer)},
             std::move(done)) {
  step_ = Step::kRequest;
}

Result<wire::CmInvitation, std::string> CmAnswer::invite(
    const std::vector<wire::SocketAddress>& theirs) {
  const Device& device = endpoint_->device();
  const auto addresses = BL_TRY(hub_->addresses(device));
  const NetdevAddress* const chosen = choose_address(addresses, theirs);
  if (chosen == nullptr) {
    return fail("the two ends have no kind of IP address in common: " + ends_.peer + " has " +
                ip_text(theirs.front()) + ", and " + device.netdev + " here " +
                ip_text(addresses.front().address));
  }
  auto cookie = make_token();
  if (!cookie) return fail(describe(cookie.error()));
  invitation_.address = BL_TRY(hub_->listen(device, chosen->address));
  invitation_.cookie = *cookie;
  ends_.ours = invitation_.address;
  if (!theirs.empty()) ends_.theirs = theirs.front();
  hub_->expect(*cookie, [self = weak_from_this()](verbs::CmId id) {
    const auto call = std::static_pointer_cast<CmAnswer>(self.lock());
    if (call != nullptr) call->on_request(std::move(id));
  });
  return invitation_;
}

void CmAnswer::on_request(verbs::CmId id) {
  take_id(std::move(id));
  if (const auto right = check_device(id_, endpoint_->device(), ends_.ours); !right) {
    id_.reject();
    return finish(fail(right.error()));
  }
  if (const Status accepted = accept(); !accepted) {
    id_.reject();
    return fail_step(accepted.error());
  }
  await_greeting();
}

Status CmAnswer::accept() {
  const verbs::Qp& qp = endpoint_->qp();
  BL_TRY(cm_to_init(qp, id_));
  BL_TRY(post_greeting_receive(qp, endpoint_->memory()));
  if (!kernel_moves()) BL_TRY(cm_to_rts(qp, id_, *options_));
  return id_.accept(parameters(RDMA_MAX_RESP_RES));
}

void CmAnswer::on_event(const verbs::CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_ESTABLISHED || event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT) return;
  fail_event(event);
}

}  // namespace beeline
