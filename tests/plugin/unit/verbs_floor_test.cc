// SPDX-License-Identifier: Apache-2.0
//
// The wrapper around libibverbs: error conventions, owners, creation of queue pairs, events.
#include <cerrno>
#include <cstring>
#include <utility>

#include "plugin/verbs/async_event.h"
#include "plugin/verbs/check.h"
#include "plugin/verbs/create.h"
#include "plugin/verbs/qp_steps.h"
#include "plugin/verbs/text.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/verbs_fake.h"

namespace beeline::verbs {
namespace {

using test::FakeVerbs;
using test::LogCapture;

TEST_CASE("check: a pointer, or errno", "[unit][verbs]") {
  int object = 0;
  CHECK(from_ptr(&object, "make it").value() == &object);
  errno = EACCES;
  const auto failed = from_ptr<int>(nullptr, "make it");
  CHECK(failed.error().code == Errc::kDenied);
  CHECK(failed.error().sys_errno == EACCES);
  CHECK(std::strcmp(failed.error().what, "make it") == 0);
}

TEST_CASE("check: a null pointer without errno is a failure", "[unit][verbs]") {
  errno = 0;
  CHECK(from_ptr<int>(nullptr, "make it").error().sys_errno == EINVAL);
}

TEST_CASE("check: errno as the value, also from providers that return -1", "[unit][verbs]") {
  CHECK(from_errno(0, "do it"));
  CHECK(from_errno(ETIMEDOUT, "do it").error().code == Errc::kTimeout);
  errno = EBUSY;
  CHECK(from_errno(-1, "do it").error().code == Errc::kBusy);
}

TEST_CASE("check: -1 with errno, and a count or a negative errno", "[unit][verbs]") {
  CHECK(from_minus_one(0, "do it"));
  errno = ENODEV;
  CHECK(from_minus_one(-1, "do it").error().code == Errc::kNotFound);
  CHECK(from_count(3, "count").value() == 3);
  CHECK(from_count(0, "count").value() == 0);
  CHECK(from_count(-EOPNOTSUPP, "count").error().code == Errc::kUnsupported);
}

TEST_CASE("check: both errno values for a lack of locked memory have one code", "[unit][verbs]") {
  CHECK(errc_of(ENOMEM) == Errc::kNoMemory);
  CHECK(errc_of(EAGAIN) == Errc::kNoMemory);
  CHECK(errc_of(EIO) == Errc::kSystem);
}

TEST_CASE("handle: the last owner frees once", "[unit][verbs]") {
  FakeVerbs fake;
  ibv_qp raw = {};
  {
    Qp first(fake.api, &raw);
    Qp second(std::move(first));
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move)
    CHECK(second.get() == &raw);
    Qp third;
    third = std::move(second);
    CHECK(third.get() == &raw);
    CHECK(fake.qps_freed == 0);
  }
  CHECK(fake.qps_freed == 1);
}

TEST_CASE("handle: assignment frees the old object at once", "[unit][verbs]") {
  FakeVerbs fake;
  ibv_qp one = {};
  ibv_qp two = {};
  Qp qp(fake.api, &one);
  qp = Qp(fake.api, &two);
  CHECK(fake.qps_freed == 1);
  CHECK(qp.get() == &two);
  qp.reset();
  CHECK(fake.qps_freed == 2);
  CHECK_FALSE(qp);
}

TEST_CASE("handle: a free that fails is a warning", "[unit][verbs]") {
  const LogCapture log;
  FakeVerbs fake;
  fake.free_error = EBUSY;
  ibv_qp raw = {};
  { const Qp qp(fake.api, &raw); }
  CHECK(log.has("freeing a queue pair failed: Device or resource busy"));
}

TEST_CASE("create cq: for one thread, by the flag and by the parent domain", "[unit][verbs]") {
  FakeVerbs fake;
  CHECK_FALSE(create_cq_in(fake.api, &fake.parent_domain, 24));
  constexpr std::uint32_t kBoth = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  CHECK(fake.cq_wish.cqe == 24);
  CHECK(fake.cq_wish.comp_mask == kBoth);
  CHECK(fake.cq_wish.flags == IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  CHECK(fake.cq_wish.parent_domain == &fake.parent_domain);
  CHECK(fake.cq_wish.channel == nullptr);
}

TEST_CASE("create: a device that is not of the extended kind has no thread domains",
          "[unit][verbs]") {
  const Api api;  // as loaded: these have no symbols
  ibv_context old = {};
  ibv_pd pd = {};
  pd.context = &old;
  CHECK(alloc_td(api, &old).error().code == Errc::kUnsupported);
  CHECK(alloc_parent_domain(api, &pd, nullptr).error().code == Errc::kUnsupported);
  CHECK(create_cq_in(api, &pd, 24).error().code == Errc::kUnsupported);
}

TEST_CASE("create qp: the inline size is halved until the device accepts it", "[unit][verbs]") {
  const int refusal = GENERATE(EINVAL, ENOMEM);
  FakeVerbs fake;
  fake.qp_error = refusal;
  {
    const auto made = create_qp(fake.api, nullptr, {.max_inline = 512});
    REQUIRE(made);
    CHECK(made->granted.max_inline_data == 64);
    CHECK(fake.inline_wishes == std::vector<std::uint32_t>{512, 256, 128, 64});
  }
  CHECK(fake.qps_freed == 1);
}

TEST_CASE("create qp: a refusal without inline data is final", "[unit][verbs]") {
  FakeVerbs fake;
  fake.api.create_qp = [](ibv_pd*, ibv_qp_init_attr*) -> ibv_qp* {
    errno = ENOMEM;
    return nullptr;
  };
  CHECK(create_qp(fake.api, nullptr, {.max_inline = 100}).error().code == Errc::kNoMemory);
}

TEST_CASE("create qp: other refusals are final at once", "[unit][verbs]") {
  FakeVerbs fake;
  fake.qp_error = EPERM;
  CHECK(create_qp(fake.api, nullptr, {.max_inline = 512}).error().code == Errc::kDenied);
  CHECK(fake.inline_wishes.size() == 1);
}

TEST_CASE("register: relaxed ordering uses ibv_reg_mr_iova2", "[unit][verbs]") {
  FakeVerbs fake;
  char byte = 0;
  const auto access = [&] { return fake.registrations().back().access; };
  CHECK(reg_mr(fake.api, nullptr, &byte, 1, IBV_ACCESS_LOCAL_WRITE, Ordering::kStrict));
  CHECK(access() == IBV_ACCESS_LOCAL_WRITE);
  CHECK(reg_mr(fake.api, nullptr, &byte, 1, IBV_ACCESS_LOCAL_WRITE, Ordering::kRelaxed));
  CHECK(access() == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
  fake.api.reg_mr_iova2 = nullptr;
  CHECK(reg_mr(fake.api, nullptr, &byte, 1, IBV_ACCESS_LOCAL_WRITE, Ordering::kRelaxed));
  CHECK(access() == IBV_ACCESS_LOCAL_WRITE);
  CHECK(fake.live_mrs() == 0);
}

TEST_CASE("register: a library without dma-bufs says so", "[unit][verbs]") {
  FakeVerbs fake;
  fake.api.reg_dmabuf_mr = nullptr;
  CHECK(reg_dmabuf_mr(fake.api, nullptr, 3, 0, 0x1000, 1, 0, Ordering::kStrict).error().code ==
        Errc::kUnsupported);
}

TEST_CASE("steps: INIT and RTS pass their parameters on", "[unit][verbs]") {
  FakeVerbs fake;
  ibv_qp raw = {};
  const Qp qp(fake.api, &raw);
  REQUIRE(to_init(qp, {.port = 2, .pkey_index = 3, .access = IBV_ACCESS_REMOTE_WRITE}));
  CHECK(fake.modified.qp_state == IBV_QPS_INIT);
  CHECK(fake.modified.port_num == 2);
  CHECK(fake.modified.pkey_index == 3);
  CHECK(fake.modified.qp_access_flags == IBV_ACCESS_REMOTE_WRITE);
  REQUIRE(to_rts(
      qp,
      {.sq_psn = 0x1abcdef, .timeout = 18, .retry_cnt = 5, .rnr_retry = 6, .max_rd_atomic = 4}));
  CHECK(fake.modified.qp_state == IBV_QPS_RTS);
  CHECK(fake.modified.sq_psn == 0xabcdef);
  CHECK(fake.modified.timeout == 18);
  CHECK(fake.modified.retry_cnt == 5);
  CHECK(fake.modified.rnr_retry == 6);
  CHECK(fake.modified.max_rd_atomic == 4);
}

TEST_CASE("steps: RTR passes the path to the peer on", "[unit][verbs]") {
  FakeVerbs fake;
  ibv_qp raw = {};
  const Qp qp(fake.api, &raw);
  PathParams path{.port = 2,
                  .dlid = 17,
                  .sl = 3,
                  .is_global = true,
                  .sgid_index = 5,
                  .traffic_class = 106,
                  .flow_label = 0x12345};
  path.dgid.raw[15] = 9;
  REQUIRE(to_rtr(qp, {.mtu = IBV_MTU_2048,
                      .dest_qpn = 0x1a2,
                      .rq_psn = 0xff000001,
                      .path = path,
                      .max_dest_rd_atomic = 7,
                      .min_rnr_timer = 14}));
  const ibv_qp_attr& attr = fake.modified;
  CHECK(attr.qp_state == IBV_QPS_RTR);
  CHECK(attr.path_mtu == IBV_MTU_2048);
  CHECK(attr.dest_qp_num == 0x1a2);
  CHECK(attr.rq_psn == 1);
  CHECK(attr.max_dest_rd_atomic == 7);
  CHECK(attr.min_rnr_timer == 14);
  CHECK(attr.ah_attr.port_num == 2);
  CHECK(attr.ah_attr.dlid == 17);
  CHECK(attr.ah_attr.sl == 3);
  CHECK(attr.ah_attr.is_global == 1);
  CHECK(attr.ah_attr.grh.dgid.raw[15] == 9);
  CHECK(attr.ah_attr.grh.sgid_index == 5);
  CHECK(attr.ah_attr.grh.hop_limit == 255);
  CHECK(attr.ah_attr.grh.traffic_class == 106);
  CHECK(attr.ah_attr.grh.flow_label == 0x12345);

  path.is_global = false;
  REQUIRE(to_rtr(qp, {.path = path}));
  CHECK(attr.ah_attr.is_global == 0);
  CHECK(attr.ah_attr.grh.hop_limit == 0);
}

TEST_CASE("steps: no answer from the network is a timeout, at once", "[unit][verbs]") {
  FakeVerbs fake;
  fake.modify_error = ETIMEDOUT;
  ibv_qp raw = {};
  const Qp qp(fake.api, &raw);
  CHECK(to_rtr(qp, {}).error().code == Errc::kTimeout);
}

ibv_async_event port_event(ibv_event_type type, int port) {
  ibv_async_event event = {};
  event.event_type = type;
  event.element.port_num = port;
  return event;
}

TEST_CASE("events: no event, and an interrupted read, are no errors", "[unit][verbs]") {
  FakeVerbs fake;
  CHECK(next_event(fake.api, nullptr).value() == std::nullopt);
  fake.no_event_error = EINTR;
  CHECK(next_event(fake.api, nullptr).value() == std::nullopt);
  fake.no_event_error = EIO;
  CHECK(next_event(fake.api, nullptr).error().sys_errno == EIO);
  CHECK(fake.events_acknowledged == 0);
}

TEST_CASE("events: of ports, with their port, acknowledged", "[unit][verbs]") {
  FakeVerbs fake;
  fake.events = {port_event(IBV_EVENT_PORT_ERR, 2), port_event(IBV_EVENT_PORT_ACTIVE, 2),
                 port_event(IBV_EVENT_GID_CHANGE, 1), port_event(IBV_EVENT_CLIENT_REREGISTER, 1)};
  const EventKind expected[] = {EventKind::kPortError, EventKind::kPortActive,
                                EventKind::kGidChange, EventKind::kSmChange};
  const int ports[] = {2, 2, 1, 1};
  for (int i = 0; i < 4; ++i) {
    const auto event = next_event(fake.api, nullptr);
    REQUIRE(event);
    REQUIRE(*event);
    CHECK((*event)->kind == expected[i]);
    CHECK((*event)->port == ports[i]);
    CHECK(fake.events_acknowledged == i + 1);
  }
}

TEST_CASE("events: of queue pairs and completion queues, with their object", "[unit][verbs]") {
  FakeVerbs fake;
  ibv_qp qp = {};
  qp.qp_num = 0x1a2;
  ibv_cq cq = {};
  ibv_async_event event = {};
  event.event_type = IBV_EVENT_QP_ACCESS_ERR;
  event.element.qp = &qp;
  fake.events.push_back(event);
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &cq;
  fake.events.push_back(event);
  const auto first = next_event(fake.api, nullptr);
  CHECK((*first)->kind == EventKind::kQpFatal);
  CHECK((*first)->qp_num == 0x1a2);
  CHECK((*first)->port == 0);
  const auto second = next_event(fake.api, nullptr);
  CHECK((*second)->kind == EventKind::kCqError);
  CHECK((*second)->cq == &cq);
}

TEST_CASE("events: an unknown type is kOther, and acknowledged", "[unit][verbs]") {
  FakeVerbs fake;
  fake.events = {port_event(static_cast<ibv_event_type>(31), 1)};
  const auto event = next_event(fake.api, nullptr);
  CHECK((*event)->kind == EventKind::kOther);
  CHECK(std::strcmp((*event)->text, "unknown event") == 0);
  CHECK(fake.events_acknowledged == 1);
}

TEST_CASE("text: every completion status has a text, also an unknown one", "[unit][verbs]") {
  for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i) {
    CHECK(std::strcmp(wc_status_text(static_cast<ibv_wc_status>(i)), "unknown completion status") !=
          0);
  }
  CHECK(std::strcmp(wc_status_text(static_cast<ibv_wc_status>(31)), "unknown completion status") ==
        0);
  CHECK(mtu_bytes(IBV_MTU_4096) == 4096);
  CHECK(mtu_bytes(static_cast<ibv_mtu>(7)) == 0);
}

TEST_CASE("psn: 24 bits, and not the same twice", "[unit][verbs]") {
  std::uint32_t all_or = 0;
  std::uint32_t all_and = kPsnMask;
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t psn = random_psn();
    CHECK(psn <= kPsnMask);
    all_or |= psn;
    all_and &= psn;
  }
  // Each bit was once 1 and once 0: 2^-63 is the chance that a good source fails this.
  CHECK(all_or == kPsnMask);
  CHECK(all_and == 0);
}

}  // namespace
}  // namespace beeline::verbs
