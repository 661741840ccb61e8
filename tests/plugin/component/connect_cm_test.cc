// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs that are connected by librdmacm, here by a fake one over softnic.
#include <string>

#include "tests/plugin/component/connect_cm_rig.h"

using namespace beeline;
using namespace beeline::test;

TEST_CASE("cm: queue pairs that librdmacm has set up work, and their queues are clean",
          "[component][connect]") {
  CmRig rig;
  const bool is_iwarp = GENERATE(false, true);
  if (is_iwarp) rig.play_iwarp();
  {
    const CommPair ends = rig.join();
    CHECK(rig.fake.ids() == 3);  // the listener's, and one at each end
    CHECK(ends.sender->paths[0].queues.cm);
    CHECK(ends.receiver->paths[0].queues.cm);
    CHECK_FALSE(has_completions(*ends.sender));
    CHECK_FALSE(has_completions(*ends.receiver));
    prove_write(*ends.receiver, *ends.sender);
  }
  CHECK(rig.fake.disconnects() == 2);  // one for each end
}

TEST_CASE("cm: all connections of a device use one listener, which ends with its thread",
          "[component][connect]") {
  CmRig rig;
  {
    const CommPair first = rig.join();
    const CommPair second = rig.join();
    CHECK(rig.fake.ids() == 5);
    prove_write(*second.receiver, *second.sender);
  }
  wait_for([&] { return rig.fake.ids() == 0; }, "the listener's end");
  CHECK(rig.fake.unacknowledged() == 0);
  const CommPair third = rig.join();
  prove_write(*third.receiver, *third.sender);
}

TEST_CASE("cm: it is not used if the accepting side does not have it", "[component][connect]") {
  CmRig rig(false, true);
  verbs::CmLibrary none("/nonesuch/librdmacm.so");
  rig.a = std::make_unique<ControlPlane>(cm_options(false, &none), *rig.table);
  const LogCapture log;
  const CommPair ends = rig.join();
  CHECK_FALSE(ends.sender->paths[0].queues.cm);
  CHECK(log.has("is set to use librdmacm, which is not used: no usable librdmacm: /nonesuch/"));
  prove_write(*ends.receiver, *ends.sender);
}

TEST_CASE("cm: an end that asks for it without having it says what to install",
          "[component][connect]") {
  CmRig rig;
  verbs::CmLibrary none("/nonesuch/librdmacm.so");
  const LogCapture log;
  const bool is_listener = GENERATE(true, false);
  (is_listener ? rig.a : rig.b) =
      std::make_unique<ControlPlane>(cm_options(true, &none), *rig.table);
  rig.fail_to_join();
  INFO(log.all_text());
  CHECK(log.has("no usable librdmacm: /nonesuch/librdmacm.so"));
  CHECK(log.has("install the package librdmacm1"));
}

TEST_CASE("cm: a device whose interface has no address says so", "[component][connect]") {
  CmRig rig;
  rig.there.netdev = "nonesuch0";
  const LogCapture log;
  rig.fail_to_join();
  INFO(log.all_text());
  CHECK(log.has("softnic1 on nonesuch0 has no IP address"));
  CHECK(log.has("ip addr add ADDRESS/PREFIX dev nonesuch0"));
  CHECK(rig.fake.ids() == 0);  // the peer was not asked
}

TEST_CASE("cm: an unexpected request is rejected, and does no harm", "[component][connect]") {
  CmRig rig;
  const CommPair first = rig.join();
  rig.fake.knock({});
  rig.fake.knock(std::vector<std::uint8_t>(16, 0));
  rig.fake.knock(std::vector<std::uint8_t>(56, 0xff));
  wait_for([&] { return rig.fake.rejects() == 3; }, "three refusals");
  wait_for([&] { return rig.fake.ids() == 3; }, "the end of what was refused");
  const CommPair second = rig.join();
  prove_write(*second.receiver, *second.sender);
}

TEST_CASE("cm: a port that TCP uses already is skipped", "[component][connect]") {
  CmRig rig;
  rig.fake.refuse_listen(3, EADDRINUSE);
  const CommPair ends = rig.join();
  prove_write(*ends.receiver, *ends.sender);
}

TEST_CASE("cm: a failure to listen is reported at both ends", "[component][connect]") {
  CmRig rig;
  rig.fake.refuse_listen(1000, ENODEV);
  const LogCapture log;
  rig.fail_to_join();
  wait_for([&] { return log.count("librdmacm cannot listen on 127.0.0.1") == 2; }, "two lines");
}

TEST_CASE("cm: each step that fails is named, with both ends", "[component][connect]") {
  struct Case {
    rdma_cm_event_type good;
    rdma_cm_event_type bad;
    int status;
    const char* text;
  };
  const Case one =
      GENERATE(Case{RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH,
                    ": the address was not resolved (No route to host)"},
               Case{RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL,
                    ": the route was not resolved (Invalid argument)"},
               Case{RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_REJECTED, 28,
                    "answer the connection request: the other end rejected the connection"},
               Case{RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
                    "answer the connection request: the other end did not answer"});
  CmRig rig;
  rig.fake.fail_next(one.good, one.bad, one.status);
  const LogCapture log;
  rig.fail_to_join();
  INFO(log.all_text());
  CHECK(log.has(one.text));
  CHECK(log.has("softnic1 on lo) and 127.0.0.1:"));
  // The next connection still works.
  const CommPair ends = rig.join();
  prove_write(*ends.receiver, *ends.sender);
}

TEST_CASE("cm: a resolution that timed out is repeated", "[component][connect]") {
  CmRig rig;
  for (int i = 0; i < 3; ++i) {
    rig.fake.fail_next(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
    rig.fake.fail_next(RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
  }
  const CommPair ends = rig.join();
  CHECK(rig.fake.ids() == 3);
  prove_write(*ends.receiver, *ends.sender);
}

TEST_CASE("cm: the deadline ends a call, and the log says which step it waited for",
          "[component][connect]") {
  CmRig rig;
  ControlOptions hasty = cm_options(true, &rig.library);
  hasty.connect_timeout = std::chrono::milliseconds(200);
  rig.b = std::make_unique<ControlPlane>(hasty, *rig.table);
  // An event that everybody ignores, so that no answer arrives.
  rig.fake.fail_next(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  const LogCapture log;
  rig.fail_to_join();
  INFO(log.all_text());
  CHECK(log.has("did not finish within 200 ms: it was resolving the address of "));
  CHECK(log.has("; check the route between both"));
}

TEST_CASE("cm: a queue pair whose setup fails is left out, and the others are connected",
          "[component][connect]") {
  CmRig rig;
  rig.set_qps_per_rail(2);
  std::string why;
  SECTION("with an error") {
    rig.fake.fail_next(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
    why = ": the address was not resolved (No route to host)";
  }
  SECTION("without an answer") {
    rig.fake.fail_next(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
    why = "did not finish in time, though another path is connected: it was resolving";
  }
  SECTION("at the accepting end") {
    rig.fake.fail_next(RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_REJECTED, 28);
    why = "the other end rejected the connection";
  }
  const LogCapture log;
  const CommPair ends = rig.join();
  INFO(log.all_text());
  REQUIRE(ends.sender->paths.size() == 1);
  REQUIRE(ends.receiver->paths.size() == 1);
  prove_write(*ends.receiver, *ends.sender);
  CHECK(log.count(" over 1 of 2 paths, qp ") == 2);
  CHECK(log.has(why));
  CHECK_FALSE(has_completions(*ends.sender));
}

TEST_CASE("cm: a path that only the accepting end loses ends the comm at both ends",
          "[component][connect]") {
  CmRig rig;
  rig.set_qps_per_rail(2);
  const bool has_ready = GENERATE(true, false);
  // If it has no READY: the connecting end waits for the other path before it sends one.
  if (!has_ready) rig.fake.fail_next(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  CmVerbs::lose_next_completion();
  const LogCapture log;
  Ticket ticket;
  Listener* const listener = must(rig.a->listen(rig.here_only, ticket.handle()));
  Result<ConnectionPtr> connected = ConnectionPtr();
  const auto connect = [&] {
    if (connected && *connected == nullptr) {
      connected = rig.b->connect(rig.there_only, ticket.handle());
    }
    return !connected || *connected != nullptr;
  };
  wait_for([&] { return (connect() || !has_ready) && CmVerbs::qpn_of_lost_completion() != 0; },
           "a path that the connecting end uses");
  // Messages of one channel arrive in order, so the READY has arrived when another comm is made.
  if (has_ready) REQUIRE(rig.join().receiver->paths.size() == 2);
  REQUIRE(must(rig.a->accept(*listener)) == nullptr);
  rig.fake.disconnect(rig.here, CmVerbs::qpn_of_lost_completion());
  wait_for([&] { return connect() && !rig.a->accept(*listener); }, "an accept that fails");
  rig.a->close(listener);
  INFO(log.all_text());
  const std::string lost = " was lost when the other end used it already: librdmacm, between ";
  CHECK(log.has(lost));
  if (!connected) {  // the rejection came before connect() was called again
    CHECK_FALSE(has_ready);
    CHECK(connected.error().code == Errc::kPeerClosed);
    return;
  }
  const Link& link = *(*connected)->link;
  wait_for([&] { return link.state() != Link::State::kOpen; }, "the end of the link");
  CHECK(link.cause().find(lost) != std::string::npos);
  CHECK(link.cause().find("the other end closed the connection") != std::string::npos);
}

TEST_CASE("cm: the kernel's choice of another device is an error", "[component][connect]") {
  CmRig rig;
  rig.fake.take_device(rig.here);
  const LogCapture log;
  rig.fail_to_join();
  INFO(log.all_text());
  CHECK(log.has("librdmacm chooses softnic0 for the address 127.0.0.1, not"));
}

TEST_CASE("cm: an accept whose peer gives up leaves nothing", "[component][connect]") {
  CmRig rig;
  rig.fake.fail_next(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
  rig.fail_to_join();
  rig.b.reset();
  rig.a.reset();
  CHECK(rig.fake.ids() == 0);
  CHECK(rig.fake.unacknowledged() == 0);
}
