// SPDX-License-Identifier: Apache-2.0
//
// Ports that are slow, distant, down at the other end, or reported as down by an injected event,
// and wrong conclusions of programs from them.
#include "tests/beds/softnic/fault_data.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kPortSize = 100'000;

// Assumes that a buffer can be reused after the post.
bool naive_reuses_at_once(Pair& pair) {
  Buffer from = pair.a.buffer(kPortSize);
  Buffer into = pair.b.buffer(kPortSize);
  from.fill(1);
  BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), 1)));
  from.fill(2);  // the next message
  must_complete(pair.a.send_cq.get(), 1);
  return into.has(1);
}

// Reuses the buffer after its completion was polled.
bool careful_waits_for_completion(Pair& pair) {
  Buffer from = pair.a.buffer(kPortSize);
  Buffer into = pair.b.buffer(kPortSize);
  from.fill(1);
  BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), 1)));
  must_complete(pair.a.send_cq.get(), 1);
  from.fill(2);
  return into.has(1);
}

// Assumes that the path works as long as there is no event of its own port.
bool naive_waits_for_its_own_event(Pair& pair) {
  Watchdog watchdog("softnic0");
  wait_until([&] { return watchdog.has_expired() || has_event(pair.a.context.get()); },
             "an event or the watchdog");
  return has_event(pair.a.context.get());
}

// Assumes that the path works as long as messages arrive.
bool careful_asks_the_other_end(Pair& pair) {
  BL_MUST_OK(post(pair.a.qp, nothing_work(1)));
  return poll_one(pair.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR;
}

// Assumes that a port event means that the connection is lost.
bool naive_believes_every_alarm(Pair& pair) {
  const ibv_async_event event = next_event(pair.a.context.get());
  return event.event_type != IBV_EVENT_PORT_ERR;
}

// Checks the port after an event.
bool careful_looks_at_the_port(Pair& pair) {
  (void)next_event(pair.a.context.get());
  ibv_port_attr port{};
  BL_MUST_OK(ibv_query_port(pair.a.context.get(), 1, &port));
  if (port.state != IBV_PORT_ACTIVE) return false;
  BL_MUST_OK(post(pair.a.qp, nothing_work(1)));
  return poll_one(pair.a.send_cq.get()).status == IBV_WC_SUCCESS;
}

}  // namespace

TEST_CASE("port: a slow or distant port has not read a buffer that was just posted",
          "[softnic][port]") {
  const std::string fault = GENERATE("rate=1M", "latency=300ms");
  INFO(fault);
  Pair pair;
  pair.fabric.command("h0/softnic0", fault);
  CHECK_FALSE(naive_reuses_at_once(pair));
  CHECK(careful_waits_for_completion(pair));
}

TEST_CASE("port: the bytes of a port with a rate are counted where they leave", "[softnic][port]") {
  Pair pair;
  pair.fabric.command("h0/softnic0", "rate=100M");
  Buffer here = pair.a.buffer(kPortSize);
  Buffer there = pair.b.buffer(kPortSize);
  const softnic::FabricHeader& header = pair.fabric.fabric().header();
  BL_MUST_OK(post(pair.a.qp, write_work(here.all(), there.all(), 1)));
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(header.devices[0].ports[0].sent_bytes.load() == kPortSize);
  CHECK(header.devices[1].ports[0].sent_bytes.load() == 0);
  BL_MUST_OK(post(pair.a.qp, read_work(here.all(), there.all(), 2)));
  must_complete(pair.a.send_cq.get(), 2);
  CHECK(header.devices[0].ports[0].sent_bytes.load() == kPortSize);
  CHECK(header.devices[1].ports[0].sent_bytes.load() == kPortSize);
}

TEST_CASE("port: the state of the other end's port causes no event here", "[softnic][port]") {
  Pair pair({.clock_scale = kFastClock, .wire = kImpatientWire});
  pair.fabric.command("h0/softnic1", "down");
  CHECK_FALSE(naive_waits_for_its_own_event(pair));
  CHECK(careful_asks_the_other_end(pair));
}

TEST_CASE("port: an event need not have a cause", "[softnic][port]") {
  Pair pair;
  pair.fabric.command("h0/softnic0", "event=port_err");
  CHECK_FALSE(naive_believes_every_alarm(pair));
  pair.fabric.command("h0/softnic0", "event=port_err");
  CHECK(careful_looks_at_the_port(pair));
}
