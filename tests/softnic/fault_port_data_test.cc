// SPDX-License-Identifier: Apache-2.0
//
// Ports that are slow, far away, dead at the other end, or said to be dead: what a program may not
// conclude from them.
#include "tests/softnic/fault_data.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kPortSize = 100'000;

// A buffer that was given to the NIC is free again.
bool naive_reuses_at_once(Pair& pair) {
  Buffer from = pair.a.buffer(kPortSize);
  Buffer into = pair.b.buffer(kPortSize);
  from.fill(1);
  BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), 1)));
  from.fill(2);  // the next message
  must_complete(pair.a.send_cq.get(), 1);
  return into.has(1);
}

// It is free again when its completion has been polled.
bool careful_waits_for_completion(Pair& pair) {
  Buffer from = pair.a.buffer(kPortSize);
  Buffer into = pair.b.buffer(kPortSize);
  from.fill(1);
  BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), 1)));
  must_complete(pair.a.send_cq.get(), 1);
  from.fill(2);
  return into.has(1);
}

// The path works as long as nobody tells that a port of ours failed.
bool naive_waits_for_its_own_event(Pair& pair) {
  Watchdog watchdog("softnic0");
  wait_until([&] { return watchdog.expired() || has_event(pair.a.context.get()); },
             "an event or the watchdog");
  return has_event(pair.a.context.get());
}

// The path works as long as what is sent arrives.
bool careful_asks_the_other_end(Pair& pair) {
  BL_MUST_OK(post(pair.a.qp, nothing_work(1)));
  return poll_one(pair.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR;
}

// An event about the port means that the connection is lost.
bool naive_believes_every_alarm(Pair& pair) {
  const ibv_async_event event = next_event(pair.a.context.get());
  return event.event_type != IBV_EVENT_PORT_ERR;
}

// An event is a reason to look.
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

TEST_CASE("port: a port that is down at the other end tells us nothing", "[softnic][port]") {
  Pair pair({.clock_scale = kFastClock, .wire = kImpatientWire});
  pair.fabric.command("h0/softnic1", "down");
  CHECK_FALSE(naive_waits_for_its_own_event(pair));
  CHECK(careful_asks_the_other_end(pair));
}

TEST_CASE("port: an alarm need not be true", "[softnic][port]") {
  Pair pair;
  pair.fabric.command("h0/softnic0", "event=port_err");
  CHECK_FALSE(naive_believes_every_alarm(pair));
  pair.fabric.command("h0/softnic0", "event=port_err");
  CHECK(careful_looks_at_the_port(pair));
}
