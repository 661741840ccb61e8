// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous events: which context gets which event, waiting for events, and events of destroyed
// objects.
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

// A causes an access violation at B's queue pair.
void violate(Pair& pair, Buffer& local) {
  Region nowhere = local.all();
  nowhere.rkey = 0xBAD00;
  BL_MUST_OK(post(pair.a.qp, write_work(local.all(), nowhere)));
  BL_MUST(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
}

ibv_async_event take_unacknowledged(ibv_context* context) {
  wait_until([&] { return has_event(context); }, "an event");
  ibv_async_event event{};
  BL_MUST(ibv_get_async_event(context, &event) == 0);
  return event;
}

}  // namespace

TEST_CASE("event: the first message into RTR establishes communication", "[softnic][event]") {
  const TestFabric fabric;
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  to_init(b.qp);
  to_rtr(b.qp, address_of(a.qp));
  connect(a.qp, address_of(b.qp));
  REQUIRE(post(a.qp, nothing_work(1)) == 0);
  must_complete(a.send_cq.get(), 1);
  const ibv_async_event event = next_event(b.context.get());
  CHECK(event.event_type == IBV_EVENT_COMM_EST);
  CHECK(event.element.qp == b.qp);
  // There is one event only, and none for a queue pair in RTS.
  to_rts(b.qp);
  REQUIRE(post(a.qp, nothing_work(2)) == 0);
  must_complete(a.send_cq.get(), 2);
  CHECK(!has_event(b.context.get()));
  CHECK(!has_event(a.context.get()));
}

TEST_CASE("event: an error goes to the context that owns the object, and to no other",
          "[softnic][event]") {
  Pair pair;
  const ContextPtr same_device = open_device("softnic1");
  Buffer local = pair.a.buffer(8);
  violate(pair, local);
  const ibv_async_event event = next_event(pair.b.context.get());
  CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
  CHECK(event.element.qp == pair.b.qp);
  CHECK(!has_event(pair.b.context.get()));
  CHECK(!has_event(pair.a.context.get()));
  CHECK(!has_event(same_device.get()));
}

TEST_CASE("event: port events reach every open context of the device", "[softnic][event]") {
  const TestFabric fabric;
  const ContextPtr first = open_device("softnic0");
  const ContextPtr second = open_device("softnic0");
  const ContextPtr other = open_device("softnic1");
  for (const auto& [command, type] :
       {std::pair{"down", IBV_EVENT_PORT_ERR}, std::pair{"up", IBV_EVENT_PORT_ACTIVE}}) {
    fabric.command("h0/softnic0", command);
    for (ibv_context* context : {first.get(), second.get()}) {
      const ibv_async_event event = next_event(context);
      CHECK(event.event_type == type);
      CHECK(event.element.port_num == 1);
      CHECK(!has_event(context));
    }
  }
  CHECK(!has_event(other.get()));
}

TEST_CASE("event: the second port's events carry its number", "[softnic][event]") {
  softnic::FabricSpec spec = softnic::default_fabric();
  for (softnic::HostSpec& host : spec.hosts) host.devices[0].ports.emplace_back();
  const TestFabric fabric(spec);
  const ContextPtr context = open_device("softnic0");
  fabric.command("h0/softnic0:2", "down");
  const ibv_async_event event = next_event(context.get());
  CHECK(event.event_type == IBV_EVENT_PORT_ERR);
  CHECK(event.element.port_num == 2);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  REQUIRE(ibv_query_port(context.get(), 2, &port) == 0);
  CHECK(port.state == IBV_PORT_DOWN);
}

TEST_CASE("event: a port that does not change causes no event", "[softnic][event]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  fabric.command("h0/softnic0", "up");
  fabric.command("h0/softnic0", "down");
  fabric.command("h0/softnic0", "down");
  fabric.command("h0/softnic0", "up");
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PORT_ERR);
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PORT_ACTIVE);
  CHECK(!has_event(context.get()));
}

TEST_CASE("event: a send that waits for a receive keeps the queue draining", "[softnic][event]") {
  Pair pair;
  REQUIRE(post(pair.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = 1}) == 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  REQUIRE(ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
  CHECK(!has_event(pair.a.context.get()));
  REQUIRE(post(pair.b.qp, RecvWork{.wr_id = 2}) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(next_event(pair.a.context.get()).event_type == IBV_EVENT_SQ_DRAINED);
}

TEST_CASE("event: a non-blocking descriptor returns at once", "[softnic][event]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  const int flags = fcntl(context->async_fd, F_GETFL);
  REQUIRE(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
  ibv_async_event event{};
  errno = 0;
  CHECK(ibv_get_async_event(context.get(), &event) == -1);
  CHECK(errno == EAGAIN);
  fabric.command("h0/softnic0", "down");
  CHECK(next_event(context.get()).event_type == IBV_EVENT_PORT_ERR);
}

TEST_CASE("event: a waiting thread is woken", "[softnic][event]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  ibv_async_event event{};
  int rc = -1;
  std::thread waiter([&] {
    rc = ibv_get_async_event(context.get(), &event);
    if (rc == 0) ibv_ack_async_event(&event);
  });
  fabric.command("h0/softnic0", "down");
  waiter.join();
  CHECK(rc == 0);
  CHECK(event.event_type == IBV_EVENT_PORT_ERR);
}

TEST_CASE("event: destroying a queue pair drops its unread events", "[softnic][event]") {
  Pair pair;
  Buffer local = pair.a.buffer(8);
  violate(pair, local);
  wait_until([&] { return has_event(pair.b.context.get()); }, "the event");
  pair.b.owned_qp.reset();
  pair.fabric.command("h0/softnic1", "down");
  CHECK(next_event(pair.b.context.get()).event_type == IBV_EVENT_PORT_ERR);
  CHECK(!has_event(pair.b.context.get()));
}

TEST_CASE("event: destroying a queue pair waits for its events to be acknowledged",
          "[softnic][event]") {
  Pair pair;
  Buffer local = pair.a.buffer(8);
  violate(pair, local);
  ibv_async_event event = take_unacknowledged(pair.b.context.get());
  std::atomic<bool> begun{false};
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    begun = true;
    pair.b.owned_qp.reset();
    destroyed = true;
  });
  wait_until([&] { return begun.load(); }, "the thread");
  // Passes some time: a hundred round trips of other traffic on the same device.
  Endpoint c("softnic1");
  connect(c.qp, address_of(c.qp));
  for (std::uint64_t i = 0; i < 100; ++i) {
    REQUIRE(post(c.qp, nothing_work(i)) == 0);
    must_complete(c.send_cq.get(), i);
  }
  const bool too_early = destroyed;
  ibv_ack_async_event(&event);
  destroyer.join();
  CHECK(!too_early);
}

TEST_CASE("event: unread events do not keep a context open", "[softnic][event]") {
  const TestFabric fabric;
  for (int i = 0; i < 3; ++i) {
    ContextPtr context = open_device("softnic0");
    for (int j = 0; j < 50; ++j) {
      fabric.command("h0/softnic0", "down");
      fabric.command("h0/softnic0", "up");
    }
  }
  const ContextPtr fresh = open_device("softnic0");
  CHECK(!has_event(fresh.get()));  // no events from before it was opened
}
