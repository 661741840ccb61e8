// SPDX-License-Identifier: Apache-2.0
//
// Paused ports, on which no data moves and no timeout runs, and black holes, which lose all packets
// until the retries are used up.
#include "tests/beds/softnic/fault_data.h"

using namespace beeline::test;

namespace {

const char* const kPorts[] = {"softnic0", "softnic1"};

std::string other_device(const std::string& device) {
  return device == kPorts[0] ? kPorts[1] : kPorts[0];
}

// Connections with short timeouts, a pair of buffers, and the device that will be paused.
struct PauseScene {
  explicit PauseScene(const std::string& device, std::size_t size = 4096)
      : pair({.clock_scale = kFastClock, .wire = kImpatientWire}),
        still(device),
        from(pair.a.buffer(size)),
        into(pair.b.buffer(size)) {
    from.fill(1);
  }

  void command(const std::string& text) { pair.fabric.command("h0/" + still, text); }
  // While this device is paused, the timeouts of the other one run.
  std::vector<ibv_wc> poll_a_while(ibv_cq* cq, std::size_t count) {
    return poll_guarded(cq, count, other_device(still));
  }
  bool is_quiet() {
    return !has_event(pair.a.context.get()) && !has_event(pair.b.context.get()) &&
           is_empty(pair.a.send_cq.get()) && is_empty(pair.b.recv_cq.get());
  }
  void post_three() {
    for (std::uint64_t i = 0; i < 3; ++i) BL_MUST_OK(post(pair.a.qp, send_work(from.all(), i)));
  }

  Pair pair;
  std::string still;
  Buffer from;
  Buffer into;
};

// Assumes that every posted request completes at some time.
bool naive_waits_for_the_end(PauseScene& scene) {
  scene.post_three();
  return scene.poll_a_while(scene.pair.a.send_cq.get(), 3).size() == 3;
}

// Has its own timeout and then ends the connection.
bool careful_ends_it(PauseScene& scene) {
  scene.post_three();
  const auto early = scene.poll_a_while(scene.pair.a.send_cq.get(), 3);
  if (early.size() == 3) return false;
  BL_MUST_OK(modify_state(scene.pair.a.qp, IBV_QPS_ERR));
  return has_all(poll_many(scene.pair.a.send_cq.get(), 3), 3, IBV_WC_WR_FLUSH_ERR);
}

// Gives up after the time in which the NIC's retries should have ended.
bool naive_gives_up(PauseScene& scene) {
  BL_MUST_OK(post(scene.pair.a.qp, write_work(scene.from.all(), scene.into.all(), 1)));
  return has_all(scene.poll_a_while(scene.pair.a.send_cq.get(), 1), 1, IBV_WC_SUCCESS);
}

// Waits until the NIC reports that there is no answer.
bool careful_waits(PauseScene& scene) {
  BL_MUST_OK(post(scene.pair.a.qp, write_work(scene.from.all(), scene.into.all(), 1)));
  return poll_one(scene.pair.a.send_cq.get()).status == IBV_WC_SUCCESS && scene.into.has(1);
}

}  // namespace

TEST_CASE("pause: only a timeout of the program ends a wait", "[softnic][pause]") {
  const std::string device = GENERATE(from_range(std::begin(kPorts), std::end(kPorts)));
  INFO(device);
  SECTION("without") {
    PauseScene scene(device);
    BL_MUST_OK(post(scene.pair.b.qp, recv_work(scene.into.all(), 9)));
    scene.command("pause");
    CHECK_FALSE(naive_waits_for_the_end(scene));
    CHECK(scene.is_quiet());
    CHECK(scene.into.is_zero(0, 4096));
    CHECK(state_of(scene.pair.a.qp) == IBV_QPS_RTS);
    CHECK(state_of(scene.pair.b.qp) == IBV_QPS_RTS);
  }
  SECTION("with") {
    PauseScene scene(device);
    scene.command("pause");
    CHECK(careful_ends_it(scene));
    scene.command("resume");
    connect_both(scene.pair.a.qp, scene.pair.b.qp);
    CHECK(careful_waits(scene));
  }
}

TEST_CASE("pause: a queue pair can be reset, reconnected and destroyed", "[softnic][pause]") {
  const std::string device = GENERATE(from_range(std::begin(kPorts), std::end(kPorts)));
  INFO(device);
  PauseScene scene(device);
  scene.command("pause");
  scene.post_three();
  REQUIRE(modify_state(scene.pair.a.qp, IBV_QPS_RESET) == 0);
  connect_both(scene.pair.a.qp, scene.pair.b.qp, kImpatientWire);
  CHECK_FALSE(naive_waits_for_the_end(scene));
  scene.pair.a.owned_qp.reset();
  scene.pair.b.owned_qp.reset();
  CHECK(scene.is_quiet());
}

TEST_CASE("pause: it outlasts the timeouts and ends at its time", "[softnic][pause]") {
  const std::string device = GENERATE(from_range(std::begin(kPorts), std::end(kPorts)));
  INFO(device);
  SECTION("the program gives up") {
    PauseScene scene(device);
    scene.command("pause=60s");
    CHECK_FALSE(naive_gives_up(scene));
  }
  SECTION("the program waits") {
    PauseScene scene(device);
    const auto start = Clock::now();
    scene.command("pause=150ms");
    CHECK(careful_waits(scene));
    CHECK(Clock::now() - start >= std::chrono::milliseconds(150));
    CHECK(scene.is_quiet());
  }
}

TEST_CASE("pause: a transfer stops in the middle and continues there", "[softnic][pause]") {
  constexpr std::size_t kStillSize = 2 << 20;
  const std::string device = GENERATE(from_range(std::begin(kPorts), std::end(kPorts)));
  INFO(device);
  PauseScene scene(device, kStillSize);
  scene.command("rate=2M");  // takes one second
  REQUIRE(post(scene.pair.a.qp, write_work(scene.from.all(), scene.into.all(), 7)) == 0);
  const std::uint8_t early = scene.from.data()[1];
  wait_until([&] { return scene.into.peek(1) == early; }, "the transfer's start");
  scene.command("pause");
  // One piece may have been on its way when the command was given.
  CHECK(scene.poll_a_while(scene.pair.a.send_cq.get(), 1).empty());
  const std::vector<std::uint8_t> before(scene.into.bytes().begin(), scene.into.bytes().end());
  CHECK(scene.poll_a_while(scene.pair.a.send_cq.get(), 1).empty());
  CHECK(std::equal(before.begin(), before.end(), scene.into.data()));
  CHECK(scene.is_quiet());
  scene.command("rate=max");
  CHECK(scene.is_quiet());
  scene.command("resume");
  must_complete(scene.pair.a.send_cq.get(), 7);
  CHECK(scene.into.has(1));
}

TEST_CASE("pause: the timeout of a request does not run", "[softnic][pause]") {
  // One attempt of 0.7 s, which ends soon without the pause.
  PauseScene scene("softnic1");
  connect_both(scene.pair.a.qp, scene.pair.b.qp, {.timeout = 24, .retry_cnt = 0});
  scene.pair.fabric.command("h0/softnic1", "down");
  REQUIRE(post(scene.pair.a.qp, nothing_work(1)) == 0);  // the timeout starts
  scene.command("pause");
  const auto start = Clock::now();
  constexpr auto kLongEnough = std::chrono::milliseconds(1500);
  wait_until([&] { return Clock::now() - start > kLongEnough; }, "the time of two tries");
  CHECK(is_empty(scene.pair.a.send_cq.get()));
  scene.command("resume");
  const auto resumed = Clock::now();
  CHECK(poll_one(scene.pair.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  // Most of the timeout was left when the pause began.
  CHECK(Clock::now() - resumed > std::chrono::milliseconds(200));
}

TEST_CASE("pause: a black hole is reported when the retries are used up", "[softnic][pause]") {
  const std::string device = GENERATE(from_range(std::begin(kPorts), std::end(kPorts)));
  const std::string rate = GENERATE("rate=max", "rate=100M");
  INFO(device << ", " << rate);
  PauseScene scene(device);
  scene.command(rate);
  scene.command("blackhole");
  BL_MUST_OK(post(scene.pair.a.qp, write_work(scene.from.all(), scene.into.all(), 1)));
  CHECK(poll_one(scene.pair.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  CHECK(scene.is_quiet());
  CHECK(scene.into.is_zero(0, 4096));
  CHECK(state_of(scene.pair.a.qp) == IBV_QPS_ERR);
  CHECK(state_of(scene.pair.b.qp) == IBV_QPS_RTS);
  for (const auto& context : {scene.pair.a.context.get(), scene.pair.b.context.get()}) {
    ibv_port_attr port{};
    REQUIRE(ibv_query_port(context, 1, &port) == 0);
    CHECK(port.state == IBV_PORT_ACTIVE);
  }
  scene.command("resume");
  connect_both(scene.pair.a.qp, scene.pair.b.qp);
  CHECK(careful_waits(scene));
}

TEST_CASE("pause: a black hole that ends before the retries do only takes time",
          "[softnic][pause]") {
  PauseScene scene("softnic1");
  // Eight attempts of 0.3 s.
  connect_both(scene.pair.a.qp, scene.pair.b.qp, {.timeout = 23, .retry_cnt = 7});
  scene.command("blackhole");
  BL_MUST_OK(post(scene.pair.a.qp, write_work(scene.from.all(), scene.into.all(), 1)));
  CHECK(is_empty(scene.pair.a.send_cq.get()));
  scene.command("resume");
  must_complete(scene.pair.a.send_cq.get(), 1);
  CHECK(scene.into.has(1));
}
