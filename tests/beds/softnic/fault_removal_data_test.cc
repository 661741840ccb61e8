// SPDX-License-Identifier: Apache-2.0
//
// Devices that are removed, and devices that refuse to move a queue pair to ERR.
#include <cerrno>

#include "tests/beds/softnic/fault_data.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kRemovalSize = 4096;
constexpr std::uint64_t kReceives = 3;

// The faults are on softnic0. Each end has posted receives.
struct RemovalScene {
  RemovalScene()
      : pair({.clock_scale = kFastClock, .wire = kImpatientWire}),
        from(pair.a.buffer(kRemovalSize)),
        into(pair.b.buffer(kRemovalSize)) {
    from.fill(1);
    for (std::uint64_t i = 0; i < kReceives; ++i) {
      BL_MUST_OK(post(pair.a.qp, RecvWork{.wr_id = i}));
      BL_MUST_OK(post(pair.b.qp, RecvWork{.wr_id = i}));
    }
  }

  void command(const std::string& text) { pair.fabric.command("h0/softnic0", text); }
  bool is_flushed() {
    const auto done = poll_guarded(pair.a.recv_cq.get(), kReceives, "softnic1");
    return has_all(done, kReceives, IBV_WC_WR_FLUSH_ERR);
  }
  bool is_working() {
    BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), 5)));
    return poll_one(pair.a.send_cq.get()).status == IBV_WC_SUCCESS;
  }

  Pair pair;
  Buffer from;
  Buffer into;
};

// Ends a connection: moves the queue pair to ERR and waits for all completions.
bool naive_waits_for_flushes(RemovalScene& scene) {
  (void)modify_state(scene.pair.a.qp, IBV_QPS_ERR);
  return scene.is_flushed();
}

// Destroys the queue pair if it cannot move to ERR.
bool careful_destroys(RemovalScene& scene) {
  if (modify_state(scene.pair.a.qp, IBV_QPS_ERR) == 0) return scene.is_flushed();
  scene.pair.a.owned_qp.reset();
  scene.pair.a.qp = nullptr;
  return is_empty(scene.pair.a.recv_cq.get());
}

}  // namespace

TEST_CASE("refuse: a queue pair that cannot move to ERR can be destroyed", "[softnic][refuse]") {
  SECTION("waits") {
    RemovalScene scene;
    scene.command("refuse-err=on");
    CHECK_FALSE(naive_waits_for_flushes(scene));
    CHECK(modify_state(scene.pair.a.qp, IBV_QPS_ERR) == EIO);
    CHECK(state_of(scene.pair.a.qp) == IBV_QPS_RTS);
    CHECK(scene.is_working());
    CHECK(modify_state(scene.pair.b.qp, IBV_QPS_ERR) == 0);  // the other device does not refuse
    scene.command("refuse-err=off");
    CHECK(naive_waits_for_flushes(scene));
  }
  SECTION("destroys") {
    RemovalScene scene;
    scene.command("refuse-err=on");
    CHECK(careful_destroys(scene));
    BL_MUST_OK(post(scene.pair.b.qp, nothing_work(1)));
    CHECK(poll_one(scene.pair.b.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  }
  SECTION("resets") {
    RemovalScene scene;
    scene.command("refuse-err=on");
    CHECK(modify_state(scene.pair.a.qp, IBV_QPS_RESET) == 0);
  }
}

TEST_CASE("removal: a removed device returns no completions", "[softnic][removal]") {
  SECTION("waits") {
    RemovalScene scene;
    scene.command("remove");
    CHECK_FALSE(naive_waits_for_flushes(scene));
    CHECK(modify_state(scene.pair.a.qp, IBV_QPS_ERR) == EIO);
    CHECK(modify_state(scene.pair.a.qp, IBV_QPS_RESET) == EIO);
  }
  SECTION("destroys") {
    RemovalScene scene;
    scene.command("remove");
    CHECK(careful_destroys(scene));
  }
}

TEST_CASE("removal: posts to a removed device are accepted and have no effect",
          "[softnic][removal]") {
  const bool is_back = GENERATE(false, true);
  INFO((is_back ? "it is back" : "it is gone"));
  RemovalScene scene;
  scene.command("remove");
  if (is_back) scene.command("return");
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(post(scene.pair.a.qp, write_work(scene.from.all(), scene.into.all(), i)) == 0);
    CHECK(post(scene.pair.a.qp, RecvWork{.wr_id = i}) == 0);
  }
  CHECK(poll_guarded(scene.pair.a.send_cq.get(), 1, "softnic1").empty());
  CHECK(is_empty(scene.pair.a.recv_cq.get()));
  CHECK(scene.into.is_zero(0, kRemovalSize));
  // For the other end it is like a peer that died.
  BL_MUST_OK(post(scene.pair.b.qp, nothing_work(1)));
  CHECK(poll_one(scene.pair.b.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
}

TEST_CASE("removal: a running transfer stops", "[softnic][removal]") {
  constexpr std::size_t kBig = 2 << 20;
  const bool ours = GENERATE(false, true);
  INFO((ours ? "the sender's device" : "the receiver's device"));
  Pair pair({.clock_scale = kFastClock, .wire = kImpatientWire});
  Buffer from = pair.a.buffer(kBig);
  Buffer into = pair.b.buffer(kBig);
  from.fill(1);
  pair.fabric.command("h0/softnic0", "rate=2M");  // takes one second
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), 7)) == 0);
  const std::uint8_t early = from.data()[1];
  wait_until([&] { return into.peek(1) == early; }, "the transfer's start");
  pair.fabric.command(ours ? "h0/softnic0" : "h0/softnic1", "remove");
  const auto ends = poll_guarded(pair.a.send_cq.get(), 1, ours ? "softnic1" : "softnic0");
  if (ours) {
    CHECK(ends.empty());
  } else {
    CHECK(has_all(ends, 1, IBV_WC_RETRY_EXC_ERR));
  }
  CHECK_FALSE(into.has(1));
}

TEST_CASE("removal: a device that is back works for contexts that are opened afterwards",
          "[softnic][removal]") {
  RemovalScene scene;
  scene.command("remove");
  scene.command("return");
  CHECK(modify_state(scene.pair.a.qp, IBV_QPS_RESET) == EIO);
  REQUIRE(careful_destroys(scene));
  Endpoint fresh("softnic0");
  Buffer from = fresh.buffer(kRemovalSize);
  from.fill(3);
  connect_both(fresh.qp, scene.pair.b.qp);
  BL_MUST_OK(post(fresh.qp, write_work(from.all(), scene.into.all(), 5)));
  must_complete(fresh.send_cq.get(), 5);
  CHECK(scene.into.has(3));
}

TEST_CASE("refuse: a closed device does no work, even if it refuses moves to ERR",
          "[softnic][refuse]") {
  RemovalScene scene;
  scene.pair.fabric.command("h0/softnic0", "refuse-err=on");
  REQUIRE(ibv_close_device(scene.pair.a.context.get()) == 0);  // its objects still exist
  Buffer from = scene.pair.b.buffer(8);
  from.fill(2);
  BL_MUST_OK(post(scene.pair.b.qp, write_work(from.all(), scene.from.part(0, 8), 1)));
  CHECK(poll_one(scene.pair.b.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  CHECK(scene.from.has(1));
}
