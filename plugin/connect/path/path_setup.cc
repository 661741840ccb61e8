// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/path/path_setup.h"

#include <utility>

#include "common/check/assert.h"
#include "plugin/verbs/check.h"
#include "plugin/verbs/create.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

// Each work request may complete, and all of them at once when the queue pair is flushed. A device
// that cannot hold so many refuses. A smaller queue would overflow later.
int cq_entries(const CommPlan& plan) {
  return static_cast<int>(plan.send_depth + plan.receive_depth + plan.flush_depth);
}

Result<verbs::Cq> make_cq(const Device& device, const CommPlan& plan, const ThreadDomain& domain) {
  if (domain) {
    Result<verbs::Cq> made = verbs::create_cq_in(device.api(), domain.pd(), cq_entries(plan));
    if (made) return made;
  }
  return verbs::create_cq(device.api(), device.context->raw(), cq_entries(plan));
}

Result<Queues> make_queues(const Device& device, const CommPlan& plan, const ThreadDomain& domain) {
  Queues queues;
  queues.cq = BL_TRY(make_cq(device, plan, domain));
  ibv_cq* const cq = queues.cq.get();
  ibv_pd* const pd = domain ? domain.pd() : BL_TRY(device.context->pd());
  verbs::MadeQp made = BL_TRY(verbs::create_qp(device.api(), pd,
                                               {.send_cq = cq,
                                                .recv_cq = cq,
                                                .send_depth = plan.send_depth,
                                                .recv_depth = plan.receive_depth,
                                                .max_inline = plan.inline_bytes}));
  queues.qp = std::move(made.qp);
  queues.max_inline = made.granted.max_inline_data;
  return queues;
}

// Without the device's locks if the device allows that, else with them.
Result<PathResources> make_path(const Device& device, const CommPlan& plan,
                                const QpOptions& options) {
  PathResources path;
  path.device = &device;
  ibv_pd* const pd = BL_TRY(device.context->pd());
  path.domain = ThreadDomain::make(*device.context, pd, options.thread_domains);
  if (path.domain) {
    Result<Queues> queues = make_queues(device, plan, path.domain);
    if (queues) {
      path.queues = *std::move(queues);
      return path;
    }
    path.domain = {};
  }
  path.queues = BL_TRY(make_queues(device, plan, {}));
  return path;
}

}  // namespace

Result<PathSetup> PathSetup::create(const PathPlace& place, const Device& device,
                                    const CommPlan& plan, const QpOptions& options,
                                    const ibv_sge& scratch) {
  PathSetup made;
  made.path_ = BL_TRY(make_path(device, plan, options));
  made.path_.rail = place.rail;
  made.path_.peer_rail = place.peer_rail;
  made.scratch_ = scratch;
  made.psn_ = verbs::random_psn();
  made.has_ece_enabled_ = options.ece;
  return made;
}

std::optional<ibv_ece> PathSetup::ece() const {
  if (!has_ece_enabled_) return std::nullopt;
  const Result<ibv_ece> ece = verbs::query_ece(path_.queues.qp);
  // Vendor 0: the device has no such options.
  if (!ece || ece->vendor_id == 0) return std::nullopt;
  return *ece;
}

void PathSetup::set_route(Route route) {
  route_ = std::move(route);
  if (route_.ece && !ece()) route_.ece.reset();
}

Status PathSetup::connect(const QpOptions& options) {
  BL_ASSERT(!is_connected_, "a path is connected once");
  const verbs::Qp& qp = path_.queues.qp;
  // Possible in RESET only, and only once: a connect that failed has left that state. If the device
  // refuses, the queue pair works without.
  if (route_.ece && !has_set_ece_) has_set_ece_ = verbs::set_ece(qp, *route_.ece).has_value();
  BL_TRY(verbs::to_init(
      qp, {.port = device().port, .pkey_index = route_.pkey_index, .access = kQpAccess}));
  BL_TRY(verbs::to_rtr(qp, {.mtu = route_.mtu,
                            .dest_qpn = route_.peer_qpn,
                            .rq_psn = route_.peer_psn,
                            .path = route_.path,
                            .max_dest_rd_atomic = route_.reads,
                            .min_rnr_timer = options.min_rnr_timer}));
  BL_TRY(verbs::to_rts(qp, {.sq_psn = psn_,
                            .timeout = options.timeout,
                            .retry_cnt = options.retry_count,
                            .rnr_retry = options.rnr_retry,
                            .max_rd_atomic = route_.reads}));
  is_connected_ = true;
  return {};
}

void PathSetup::adopt(verbs::CmId id) noexcept {
  BL_ASSERT(!is_connected_, "a path is connected once");
  path_.queues.cm = std::move(id);
  is_connected_ = true;
}

// The peer's key is not checked for 0 bytes.
Status PathSetup::start_probe() const {
  BL_ASSERT(is_connected_, "a path is probed once it is connected");
  ibv_send_wr probe = {};
  probe.opcode = IBV_WR_RDMA_WRITE;
  probe.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  return verbs::from_errno(ibv_post_send(qp().get(), &probe, &refused), "probe a path");
}

Outcome<bool> PathSetup::poll_probe() const {
  ibv_wc completion = {};
  const int found = ibv_poll_cq(cq(), 1, &completion);
  if (found < 0) return fail(Problem(Errc::kSystem, "its completion queue cannot be read"));
  if (found == 0) return false;
  if (completion.status == IBV_WC_SUCCESS) return true;
  return fail(Problem(Errc::kTimeout, std::string("a write of 0 bytes failed: ") +
                                          verbs::wc_status_text(completion.status)));
}

PathResources PathSetup::finish() && {
  path_.own = route_.own;
  path_.notify = route_.notify;
  path_.peer_qpn = route_.peer_qpn;
  path_.peer_device = std::move(route_.peer_device);
  path_.speed_mbps = route_.speed_mbps;
  return std::move(path_);
}

}  // namespace beeline
