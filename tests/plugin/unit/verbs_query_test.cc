// SPDX-License-Identifier: Apache-2.0
//
// Queries of old and new libraries, refusals of devices, and texts for states and events.
#include "plugin/verbs/query.h"

#include <cerrno>
#include <set>
#include <string>

#include "plugin/verbs/async_event.h"
#include "plugin/verbs/qp_steps.h"
#include "plugin/verbs/text.h"
#include "tests/support/catch.h"
#include "tests/support/verbs_fake.h"

namespace beeline::verbs {
namespace {

TEST_CASE("query: an old provider is called by the old interface", "[unit][verbs]") {
  ibv_context context = {};  // its abi_compat does not say "extended"
  Api api;
  api.query_port_compat = [](ibv_context*, uint8_t port, _compat_ibv_port_attr* attr) {
    reinterpret_cast<ibv_port_attr*>(attr)->lid = port == 2 ? 17 : 0;
    return port <= 2 ? 0 : EINVAL;
  };
  const auto found = query_port(api, &context, 2);
  REQUIRE(found);
  CHECK(found->attr.lid == 17);
  CHECK(found->active_speed_ex == 0);
  CHECK(query_port(api, &context, 3).error().code == Errc::kInvalid);
}

TEST_CASE("query: a call that the library lacks is unsupported", "[unit][verbs]") {
  const Api old;
  CHECK(query_port_speed(old, nullptr, 1).error().code == Errc::kUnsupported);
  CHECK(query_gid_table(old, nullptr, 8).error().code == Errc::kUnsupported);
  ibv_qp raw = {};
  test::FakeVerbs fake;  // has no ECE
  const Qp qp(fake.api, &raw);
  CHECK(query_ece(qp).error().code == Errc::kUnsupported);
  CHECK(set_ece(qp, {}).error().code == Errc::kUnsupported);
}

TEST_CASE("query: a refusal of the device is an error with its reason", "[unit][verbs]") {
  Api api;
  api.query_port_speed = [](ibv_context*, std::uint32_t, std::uint64_t*) { return EOPNOTSUPP; };
  CHECK(query_port_speed(api, nullptr, 1).error().code == Errc::kUnsupported);
  api.query_gid_table = [](ibv_context*, ibv_gid_entry*, size_t, uint32_t, size_t) {
    return ssize_t{-ENODEV};
  };
  CHECK(query_gid_table(api, nullptr, 8).error().code == Errc::kNotFound);
  api.query_gid = [](ibv_context*, uint8_t, int, ibv_gid*) {
    errno = ENODATA;
    return -1;
  };
  CHECK(query_gid(api, nullptr, 1, 0).error().code == Errc::kNotFound);
  api.query_pkey = [](ibv_context*, uint8_t, int, __be16*) {
    errno = EACCES;
    return -1;
  };
  CHECK(query_pkey(api, nullptr, 1, 0).error().code == Errc::kDenied);
}

AsyncEvent told(ibv_event_type type) {
  test::FakeVerbs fake;
  ibv_qp qp = {};
  qp.qp_num = 0x1a2;
  ibv_async_event event = {};
  event.event_type = type;
  event.element.qp = &qp;
  fake.events.push_back(event);
  const auto read = next_event(fake.api, nullptr);
  REQUIRE(read);
  REQUIRE(*read);
  return **read;
}

TEST_CASE("events: one that says nothing about health is kOther, with its queue pair if it has one",
          "[unit][verbs]") {
  for (const auto type : {IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_PATH_MIG,
                          IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_QP_LAST_WQE_REACHED}) {
    CAPTURE(type);
    CHECK(told(type).kind == EventKind::kOther);
    CHECK(told(type).qp_num == 0x1a2);
  }
  for (const auto type : {IBV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_WQ_FATAL}) {
    CAPTURE(type);
    CHECK(told(type).kind == EventKind::kOther);
    CHECK(told(type).qp_num == 0);
  }
}

TEST_CASE("events: changes of the subnet have different kinds", "[unit][verbs]") {
  CHECK(told(IBV_EVENT_PKEY_CHANGE).kind == EventKind::kPkeyChange);
  CHECK(told(IBV_EVENT_LID_CHANGE).kind == EventKind::kLidChange);
  CHECK(told(IBV_EVENT_SM_CHANGE).kind == EventKind::kSmChange);
  CHECK(told(IBV_EVENT_DEVICE_FATAL).kind == EventKind::kDeviceFatal);
}

// The log texts of all states or events. No two may be equal.
template <class Enum, class Words>
std::set<std::string> words_of(int first, int last, Words words) {
  std::set<std::string> all;
  for (int i = first; i <= last; ++i) all.insert(words(static_cast<Enum>(i)));
  return all;
}

TEST_CASE("text: every event and every port state has a text of its own", "[unit][verbs]") {
  const auto events = words_of<ibv_event_type>(IBV_EVENT_CQ_ERR, IBV_EVENT_WQ_FATAL, event_text);
  CHECK(events.size() == IBV_EVENT_WQ_FATAL - IBV_EVENT_CQ_ERR + 1);
  CHECK_FALSE(events.contains("unknown event"));
  const auto ports = words_of<ibv_port_state>(IBV_PORT_NOP, IBV_PORT_ACTIVE_DEFER, port_state_text);
  CHECK(ports.size() == IBV_PORT_ACTIVE_DEFER - IBV_PORT_NOP + 1);
  CHECK_FALSE(ports.contains("UNKNOWN"));
}

TEST_CASE("text: an unknown state is reported as unknown", "[unit][verbs]") {
  CHECK(std::string(port_state_text(static_cast<ibv_port_state>(7))) == "UNKNOWN");
  CHECK(mtu_bytes(IBV_MTU_256) == 256);
  CHECK(mtu_bytes(IBV_MTU_512) == 512);
  CHECK(mtu_bytes(IBV_MTU_1024) == 1024);
  CHECK(mtu_bytes(IBV_MTU_2048) == 2048);
}

}  // namespace
}  // namespace beeline::verbs
