// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/cm/cm_setup.h"

#include <cerrno>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/connect/channel/identity.h"
#include "plugin/connect/path/qp_options.h"
#include "plugin/connect/socket/address.h"
#include "plugin/verbs/check.h"

namespace beeline {
namespace {

// The completion queue has no completion channel, so that it has to be polled.
constexpr std::int64_t kPollAgainNs = kNsPerMs;
// On iWARP, connections share the port numbers of TCP, but the connection manager chooses one
// without asking TCP. If it is taken, connect fails with EADDRINUSE and is tried again, this often.
constexpr int kConnectAttempts = 8;
// The kernel waits for a notification of the neighbor table. If it misses that, it waits until this
// timeout. So the timeout is short, and the step is repeated until the comm's own timeout.
constexpr int kResolveMs = 500;

bool is_timeout(const verbs::CmEvent& event) noexcept { return event.status == -ETIMEDOUT; }

Status modify(const verbs::Qp& qp, verbs::CmId::Step step, const char* what) {
  return verbs::from_errno(qp.api().modify_qp(qp.get(), &step.attr, step.mask), what);
}

// With the access rights that the peer needs.
Status cm_to_init(const verbs::Qp& qp, verbs::CmId& id) {
  verbs::CmId::Step step = BL_TRY(id.step_to(IBV_QPS_INIT));
  step.attr.qp_access_flags = kQpAccess;
  step.mask |= IBV_QP_ACCESS_FLAGS;
  return modify(qp, step, "move the queue pair to INIT");
}

// From INIT through RTR.
Status cm_to_rts(const verbs::Qp& qp, verbs::CmId& id, const QpOptions& options) {
  BL_ASSERT(qp->context->device->transport_type != IBV_TRANSPORT_IWARP,
            "the kernel moves the queue pairs of iWARP");
  verbs::CmId::Step rtr = BL_TRY(id.step_to(IBV_QPS_RTR));
  rtr.attr.min_rnr_timer = options.min_rnr_timer;
  BL_TRY(modify(qp, rtr, "move the queue pair to RTR"));
  verbs::CmId::Step rts = BL_TRY(id.step_to(IBV_QPS_RTS));
  rts.attr.timeout = options.timeout;
  rts.attr.retry_cnt = options.retry_count;
  rts.attr.rnr_retry = options.rnr_retry;
  return modify(qp, rts, "move the queue pair to RTS");
}

}  // namespace

// --- Both sides ---

CmSetup::~CmSetup() { hub_->forget(id_.key()); }

std::string CmSetup::step_text() const {
  switch (step_) {
    case Step::kAddress: return "resolving the address of " + ends_.peer;
    case Step::kRoute: return "resolving the route to " + ends_.peer;
    case Step::kConnect: return "waiting for " + ends_.peer + " to answer the connection request";
    case Step::kRequest: return "waiting for the connection request of " + ends_.peer;
    case Step::kFirstMessage: return first_.waiting_text();
  }
  return "";
}

std::string CmSetup::timeout_text(const std::string& limit) const {
  std::string text = "librdmacm, between " + ends_.text() + ", did not finish " +
                     (limit.empty() ? "in time" : limit) + ": it was " + step_text();
  if (is_resolving()) text += "; " + route_advice(ends_);
  return text;
}

rdma_conn_param CmSetup::parameters(std::uint8_t reads) const noexcept {
  rdma_conn_param param = {};
  param.responder_resources = reads;
  param.initiator_depth = reads;
  param.flow_control = 1;
  param.retry_count = options_->retry_count;
  param.rnr_retry_count = options_->rnr_retry;
  param.qp_num = path_->qpn();
  return param;
}

void CmSetup::take_id(verbs::CmId id) {
  hub_->forget(id_.key());
  id_ = std::move(id);
  hub_->watch(id_, [self = weak_from_this()](const verbs::CmEvent& event) {
    if (const auto setup = self.lock()) setup->on_event(event);
  });
}

void CmSetup::await_first_message() {
  step_ = Step::kFirstMessage;
  id_.mark_connected();
  poll_first_message();
}

void CmSetup::poll_first_message() {
  const auto is_done = first_.proceed(now_ns());
  if (!is_done) {
    return finish(fail("librdmacm, between " + ends_.text() + ": " + is_done.error().text));
  }
  if (!*is_done) {
    return hub_->poller().at(now_ns() + kPollAgainNs, [self = weak_from_this()] {
      const auto setup = self.lock();
      if (setup != nullptr && setup->done_ != nullptr) setup->poll_first_message();
    });
  }
  BL_INFO(kLogNet, "librdmacm has connected queue pair %u, between %s%s", path_->qpn(),
          ends_.text().c_str(), writes_text().c_str());
  hub_->forget(id_.key());
  path_->adopt(std::move(id_));
  finish({});
}

std::string CmSetup::writes_text() const {
  if (first_.writes() == 0) return {};
  return "; the first message was answered after " + std::to_string(first_.writes()) +
         " writes of zero bytes";
}

void CmSetup::finish(Outcome<void> outcome) {
  const Done done = std::exchange(done_, nullptr);
  if (done != nullptr) done(std::move(outcome));
}

void CmSetup::fail_step(const Error& error) { finish(fail(step_failure_text(error, ends_))); }

void CmSetup::fail_event(const verbs::CmEvent& event) {
  finish(fail(event_failure_text(event, step_text(), ends_)));
}

// --- The active side ---

CmActiveSetup::CmActiveSetup(CmHub& hub, PathSetup& path, const QpOptions& options, Target target,
                             Done done)
    : CmSetup(hub, path, options, FirstMessage::End::kConnecting,
              {.device = &path.device(), .theirs = target.destination.address, .peer = target.peer},
              std::move(done)),
      target_(std::move(target)) {}

void CmActiveSetup::start() {
  Outcome<void> resolving = resolve();
  if (!resolving) finish(std::move(resolving));
}

Outcome<void> CmActiveSetup::choose_addresses() {
  const Device& device = path_->device();
  const auto addresses = BL_TRY(hub_->addresses(device));
  const NetdevAddress* const chosen = choose_address(addresses, {&target_.destination.address, 1});
  if (chosen == nullptr) {
    const bool is_ipv4 = ends_.theirs.kind == wire::AddressKind::kIpv4;
    const std::string kind = is_ipv4 ? "IPv4" : "IPv6";
    return fail(ends_.peer + " is at the " + kind + " address " + text(ends_.theirs) + ", and " +
                own_name(device) + " has no " + kind + " address");
  }
  ends_.ours = chosen->address;
  // A scope is the number of a local interface. The peer's has no meaning on this host.
  ends_.theirs.scope = is_link_local(ends_.theirs) ? chosen->address.scope : 0;
  return {};
}

Outcome<void> CmActiveSetup::resolve() {
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

void CmActiveSetup::connect() {
  if (auto right = check_device(id_, path_->device(), ends_.ours); !right) {
    return finish(std::move(right));
  }
  step_ = Step::kConnect;
  Status ready = cm_to_init(path_->qp(), id_);
  if (ready) ready = first_.post_receive();
  if (!ready) return fail_step(ready.error());
  rdma_conn_param param = parameters(target_.reads);
  const wire::Token& cookie = target_.destination.cookie;
  param.private_data = cookie.data();
  param.private_data_len = static_cast<std::uint8_t>(cookie.size());
  const Status connecting = id_.connect(param);
  if (connecting) return;
  if (connecting.error().sys_errno == EADDRINUSE && ++attempts_ < kConnectAttempts) {
    return start();
  }
  fail_step(connecting.error());
}

void CmActiveSetup::on_event(const verbs::CmEvent& event) {
  // Not a switch: the installed librdmacm may have types that its header here does not.
  Status status;
  if (event.type == RDMA_CM_EVENT_ADDR_RESOLVED && step_ == Step::kAddress) {
    step_ = Step::kRoute;
    status = id_.resolve_route(kResolveMs);
  } else if (event.type == RDMA_CM_EVENT_ADDR_ERROR && is_timeout(event)) {
    return start();
  } else if (event.type == RDMA_CM_EVENT_ROUTE_ERROR && is_timeout(event)) {
    status = id_.resolve_route(kResolveMs);
  } else if (event.type == RDMA_CM_EVENT_ROUTE_RESOLVED && step_ == Step::kRoute) {
    return connect();
  } else if (event.type == RDMA_CM_EVENT_CONNECT_RESPONSE && step_ == Step::kConnect) {
    status = cm_to_rts(path_->qp(), id_, *options_);
    if (status) status = id_.establish();
    if (status) status = first_.send();
    if (status) return await_first_message();
  } else if (event.type == RDMA_CM_EVENT_ESTABLISHED && step_ == Step::kConnect) {
    status = first_.send();
    if (status) return await_first_message();
  } else if (event.type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
    return fail_event(event);
  }
  if (!status) fail_step(status.error());
}

// --- The passive side ---

CmPassiveSetup::CmPassiveSetup(CmHub& hub, PathSetup& path, const QpOptions& options,
                               std::string peer, Done done)
    : CmSetup(hub, path, options, FirstMessage::End::kAccepting,
              {.device = &path.device(), .peer = std::move(peer)}, std::move(done)) {
  step_ = Step::kRequest;
}

Outcome<wire::CmDestination> CmPassiveSetup::listen(
    const std::vector<wire::SocketAddress>& peer_addresses) {
  const Device& device = path_->device();
  const auto addresses = BL_TRY(hub_->addresses(device));
  const NetdevAddress* const chosen = choose_address(addresses, peer_addresses);
  if (chosen == nullptr) {
    return fail("the two ends have no kind of IP address in common: " + ends_.peer + " has " +
                ip_text(peer_addresses.front()) + ", and " + own_name(device) + " has " +
                ip_text(addresses.front().address));
  }
  destination_.cookie = BL_TRY(make_token());
  destination_.address = BL_TRY(hub_->listen(device, chosen->address));
  ends_.ours = destination_.address;
  if (!peer_addresses.empty()) ends_.theirs = peer_addresses.front();
  hub_->expect(destination_.cookie, [self = weak_from_this()](verbs::CmId id) {
    const auto setup = std::static_pointer_cast<CmPassiveSetup>(self.lock());
    if (setup != nullptr) setup->on_request(std::move(id));
  });
  return destination_;
}

void CmPassiveSetup::on_request(verbs::CmId id) {
  take_id(std::move(id));
  if (auto right = check_device(id_, path_->device(), ends_.ours); !right) {
    id_.reject();
    return finish(std::move(right));
  }
  if (const Status accepted = accept(); !accepted) {
    id_.reject();
    return fail_step(accepted.error());
  }
  await_first_message();
}

Status CmPassiveSetup::accept() {
  const verbs::Qp& qp = path_->qp();
  BL_TRY(cm_to_init(qp, id_));
  BL_TRY(first_.post_receive());
  if (!is_qp_moved_by_kernel()) BL_TRY(cm_to_rts(qp, id_, *options_));
  return id_.accept(parameters(RDMA_MAX_RESP_RES));
}

void CmPassiveSetup::on_event(const verbs::CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_ESTABLISHED || event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT) return;
  fail_event(event);
}

}  // namespace beeline
