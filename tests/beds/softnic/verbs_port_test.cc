// SPDX-License-Identifier: Apache-2.0
//
// Commands to ports during traffic: each takes effect at once, and `reset` ends it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kPortBig = 8u << 20;

// Tolerance for a machine that is busy at times.
template <class Measure>
double best_of_ten(Measure&& measure) {
  double best = measure();
  for (int i = 1; i < 10; ++i) best = std::min(best, measure());
  return best;
}

ibv_port_state port_state(ibv_context* context) {
  ibv_port_attr port{};
  BL_MUST_OK(ibv_query_port(context, 1, &port));
  return port.state;
}

// A pair with a big buffer on each side, and timeouts that outlast a short link failure.
struct PortScene {
  explicit PortScene(const PairOptions& options = {})
      : pair(options), from(pair.a.buffer(kPortBig)), into(pair.b.buffer(kPortBig)) {
    from.fill(1);
  }

  double timed_write(std::size_t size) {
    const auto start = Clock::now();
    BL_MUST_OK(post(pair.a.qp, write_work(from.part(0, size), into.part(0, size), 1)));
    must_complete(pair.a.send_cq.get(), 1);
    return seconds_since(start);
  }
  ibv_wc write_once(std::size_t size, std::uint64_t wr_id) {
    BL_MUST_OK(post(pair.a.qp, write_work(from.part(0, size), into.part(0, size), wr_id)));
    return poll_one(pair.a.send_cq.get());
  }
  void command(const std::string& text) { pair.fabric.command("h0/softnic0", text); }

  Pair pair;
  Buffer from;
  Buffer into;
};

}  // namespace

TEST_CASE("port: a transfer survives a short link failure", "[softnic][port]") {
  const char* port = GENERATE("h0/softnic0", "h0/softnic1");
  const bool reading = GENERATE(false, true);
  INFO(port << (reading ? ", READ" : ", WRITE"));
  PortScene scene;
  Endpoint& owner = std::string(port) == "h0/softnic0" ? scene.pair.a : scene.pair.b;
  scene.pair.fabric.command(port, "rate=8M");  // takes one second
  Buffer& target = reading ? scene.from : scene.into;
  if (reading) {
    scene.into.fill(2);
    std::memset(scene.from.data(), 0, kPortBig);
  }
  Buffer& source = reading ? scene.into : scene.from;
  const std::uint8_t early = source.data()[1];
  REQUIRE(early != 0);
  REQUIRE(post(scene.pair.a.qp, reading ? read_work(scene.from.all(), scene.into.all(), 7)
                                        : write_work(scene.from.all(), scene.into.all(), 7)) == 0);
  wait_until([&] { return target.peek(1) == early; }, "the transfer's start");
  scene.pair.fabric.command(port, "down");
  CHECK(next_event(owner.context.get()).event_type == IBV_EVENT_PORT_ERR);
  CHECK(port_state(owner.context.get()) == IBV_PORT_DOWN);
  CHECK(is_empty(scene.pair.a.send_cq.get()));
  scene.pair.fabric.command(port, "rate=max");
  scene.pair.fabric.command(port, "up");
  CHECK(next_event(owner.context.get()).event_type == IBV_EVENT_PORT_ACTIVE);
  CHECK(port_state(owner.context.get()) == IBV_PORT_ACTIVE);
  must_complete(scene.pair.a.send_cq.get(), 7);
  CHECK(target.has(reading ? 2 : 1));
}

TEST_CASE("port: a lasting link failure ends a running transfer", "[softnic][port]") {
  const char* port = GENERATE("h0/softnic0", "h0/softnic1");
  PortScene scene({.clock_scale = 0.01, .wire = {.timeout = 18, .retry_cnt = 1}});
  scene.pair.fabric.command(port, "rate=8M");
  REQUIRE(post(scene.pair.a.qp, write_work(scene.from.all(), scene.into.all(), 7)) == 0);
  REQUIRE(post(scene.pair.a.qp, nothing_work(8)) == 0);
  const std::uint8_t early = scene.from.data()[1];
  wait_until([&] { return scene.into.peek(1) == early; }, "the transfer's start");
  scene.pair.fabric.command(port, "down");
  const auto failed = poll_many(scene.pair.a.send_cq.get(), 2);
  CHECK(failed[0].wr_id == 7);
  CHECK(failed[0].status == IBV_WC_RETRY_EXC_ERR);
  CHECK(failed[1].wr_id == 8);
  CHECK(failed[1].status == IBV_WC_WR_FLUSH_ERR);
  // When the port is up again, the same queue pairs can be connected again.
  scene.pair.fabric.command(port, "reset");
  scene.pair.fabric.command(port, "up");
  connect_both(scene.pair.a.qp, scene.pair.b.qp);
  CHECK(scene.write_once(kPortBig, 9).status == IBV_WC_SUCCESS);
  CHECK(scene.into.has(1));
}

TEST_CASE("port: the state shows in sysfs too", "[softnic][port]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic1");
  const std::string path = std::string(context->device->ibdev_path) + "/ports/1/state";
  const auto shown = [&] {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
  };
  CHECK(shown() == "4: ACTIVE");
  fabric.command("h0/softnic1", "down");
  CHECK(shown() == "1: DOWN");
  fabric.command("h0/softnic1", "up");
  CHECK(shown() == "4: ACTIVE");
}

TEST_CASE("port: a rate limits the sender's and the receiver's port", "[softnic][port]") {
  const char* port = GENERATE("h0/softnic0", "h0/softnic1");
  PortScene scene;
  scene.pair.fabric.command(port, "rate=40M");
  const double nominal = static_cast<double>(kPortBig) / 40e6;
  const double slow = scene.timed_write(kPortBig);
  CHECK(slow >= nominal * 0.9);
  CHECK(slow <= nominal * 20);
  CHECK(scene.into.has(1));
  scene.pair.fabric.command(port, "rate=max");
  CHECK(best_of_ten([&] { return scene.timed_write(kPortBig); }) < nominal * 0.9);
}

TEST_CASE("port: a higher rate takes effect for waiting messages", "[softnic][port]") {
  Pair pair;
  Buffer from = pair.a.buffer(256u << 10);
  Buffer into = pair.b.buffer(256u << 10);
  from.fill(1);
  pair.fabric.command("h0/softnic0", "rate=32");  // hours
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), 1)) == 0);
  for (int i = 0; i < 1000; ++i) REQUIRE(is_empty(pair.a.send_cq.get()));
  pair.fabric.command("h0/softnic0", "rate=max");
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(into.has(1));
}

TEST_CASE("port: latency is added to every message", "[softnic][port]") {
  const char* port = GENERATE("h0/softnic0", "h0/softnic1");
  PortScene scene;
  scene.pair.fabric.command(port, "latency=30ms");
  for (int i = 0; i < 3; ++i) CHECK(scene.timed_write(8) >= 0.030);
  CHECK(scene.timed_write(8) < 0.030 * 20);
  // Latency does not serialize: ten messages at once take less than ten latencies.
  const double ten = best_of_ten([&] {
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < 10; ++i) BL_MUST_OK(post(scene.pair.a.qp, nothing_work(i)));
    for (std::uint64_t i = 0; i < 10; ++i) must_complete(scene.pair.a.send_cq.get(), i);
    return seconds_since(start);
  });
  CHECK(ten >= 0.030);
  CHECK(ten < 0.030 * 9);
  scene.pair.fabric.command(port, "reset");
  CHECK(best_of_ten([&] { return scene.timed_write(8); }) < 0.030);
}

TEST_CASE("port: the N-th work request fails with the requested status", "[softnic][port]") {
  struct Fault {
    const char* text;
    ibv_wc_status status;
  };
  const Fault fault = GENERATE(values<Fault>({{"retry_exc_err", IBV_WC_RETRY_EXC_ERR},
                                              {"rem_access_err", IBV_WC_REM_ACCESS_ERR},
                                              {"rem_op_err", IBV_WC_REM_OP_ERR},
                                              {"loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR},
                                              {"general_err", IBV_WC_GENERAL_ERR}}));
  const std::uint64_t nth = GENERATE(std::uint64_t{1}, std::uint64_t{4});
  INFO(fault.text << " at " << nth);
  PortScene scene;
  CHECK(scene.write_once(8, 99).status == IBV_WC_SUCCESS);  // counting starts with the command
  scene.command(std::string("error=") + fault.text + "@" + std::to_string(nth));
  for (std::uint64_t i = 1; i < nth; ++i) CHECK(scene.write_once(8, i).status == IBV_WC_SUCCESS);
  REQUIRE(post_list(scene.pair.a.qp, {nothing_work(nth), nothing_work(nth + 1)}) == 0);
  const auto failed = poll_many(scene.pair.a.send_cq.get(), 2);
  CHECK(failed[0].wr_id == nth);
  CHECK(failed[0].status == fault.status);
  CHECK(failed[1].status == IBV_WC_WR_FLUSH_ERR);
  CHECK(state_of(scene.pair.a.qp) == IBV_QPS_ERR);
  // Once only.
  connect_both(scene.pair.a.qp, scene.pair.b.qp);
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(scene.write_once(8, i).status == IBV_WC_SUCCESS);
}

TEST_CASE("port: the N-th payload is corrupted without an error", "[softnic][port]") {
  PortScene scene;
  scene.command("corrupt@2");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    INFO("message " << i);
    std::memset(scene.into.data(), 0, 4096);
    CHECK(scene.write_once(4096, i).status == IBV_WC_SUCCESS);
    CHECK(has_pattern(scene.into.bytes(0, 4096), 1) == (i != 2));
    CHECK(scene.into.is_zero(4096, 64));
  }
  CHECK(scene.from.has(1));  // the source is not changed
}

TEST_CASE("port: the N-th short write is discarded without an error", "[softnic][port]") {
  PortScene scene;
  scene.command("discard=64@2");
  const auto arrives = [&](std::size_t size) {
    std::memset(scene.into.data(), 0, 4096);
    CHECK(scene.write_once(size, 1).status == IBV_WC_SUCCESS);
    if (scene.into.is_zero(0, 4096)) return false;
    CHECK(has_pattern(scene.into.bytes(0, size), 1));
    return true;
  };
  CHECK(arrives(64));
  CHECK(arrives(65));                                      // it does not count
  CHECK(scene.write_once(0, 1).status == IBV_WC_SUCCESS);  // the same
  CHECK_FALSE(arrives(8));
  CHECK(arrives(8));
}

TEST_CASE("port: all of a long message is discarded, and none of a READ", "[softnic][port]") {
  PortScene scene;
  scene.command("discard=" + std::to_string(kPortBig) + "@1");
  BL_MUST_OK(post(scene.pair.a.qp, read_work(scene.from.part(0, 64), scene.into.part(0, 64), 1)));
  must_complete(scene.pair.a.send_cq.get(), 1);
  CHECK(scene.from.is_zero(0, 64));
  scene.from.fill(1);
  CHECK(scene.write_once(kPortBig, 2).status == IBV_WC_SUCCESS);
  CHECK(scene.into.is_zero(0, kPortBig));
}

TEST_CASE("port: the receive of a message that is discarded completes", "[softnic][port]") {
  PortScene scene;
  scene.command("discard=64@1");
  const bool is_write = GENERATE(true, false);
  CAPTURE(is_write);
  BL_MUST_OK(post(scene.pair.b.qp, recv_work(scene.into.part(0, 64), 7)));
  BL_MUST_OK(post(scene.pair.a.qp,
                  is_write ? write_imm_work(scene.from.part(0, 64), scene.into.part(0, 64), 5, 1)
                           : send_work(scene.from.part(0, 64), 1)));
  must_complete(scene.pair.a.send_cq.get(), 1);
  const ibv_wc received = poll_one(scene.pair.b.recv_cq.get());
  CHECK(received.status == IBV_WC_SUCCESS);
  CHECK(received.wr_id == 7);
  CHECK(received.byte_len == 64);
  CHECK(scene.into.is_zero(0, 64));
}

TEST_CASE("port: reset disarms faults", "[softnic][port]") {
  PortScene scene;
  scene.command("error=retry_exc_err@3");
  scene.command("corrupt@2");
  scene.command("discard=4096@2");
  scene.command("rate=1k");
  scene.command("reset");
  for (std::uint64_t i = 0; i < 6; ++i) CHECK(scene.write_once(4096, i).status == IBV_WC_SUCCESS);
  CHECK(has_pattern(scene.into.bytes(0, 4096), 1));
}

TEST_CASE("port: many commands during a transfer lose no data", "[softnic][port]") {
  constexpr std::uint64_t kMessages = 400;
  constexpr std::size_t kSize = 32768;
  PortScene scene({.clock_scale = 0.01, .wire = {.timeout = 21}});  // 86 ms a try
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> failed{false};
  std::thread sender([&] {
    try {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        const std::size_t at = i % (kPortBig / kSize) * kSize;
        BL_MUST_OK(post(scene.pair.a.qp,
                        write_work(scene.from.part(at, kSize), scene.into.part(at, kSize), i)));
        must_complete(scene.pair.a.send_cq.get(), i);
        done = i;
      }
    } catch (const MustError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      failed = true;
    }
  });
  while (done < kMessages / 4 && !failed) {
    for (const char* text : {"down", "up", "rate=900M", "latency=20us", "rate=max", "reset"}) {
      scene.command(text);
      std::this_thread::yield();
    }
  }
  sender.join();
  CHECK(!failed);
  CHECK(scene.into.has(1));
}
