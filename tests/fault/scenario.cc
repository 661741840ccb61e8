// SPDX-License-Identifier: Apache-2.0
//
// Every step is played twice, with the roles of initiator and target exchanged. A worker names the
// step it is in through `step`, for the report of a run that got stuck.
#include "tests/fault/scenario.h"

#include "tests/fault/step.h"

namespace beeline::test {
namespace {

constexpr size_t kSmall = 4096;
constexpr size_t kBig = 600'000;         // several pieces, and the other way of copying
constexpr size_t kBackOffset = 700'000;  // where what was read lands
constexpr uint32_t kImmediate = 0x5eed;

// A station as one of the two sees it during a step.
struct Scene {
  Station& station;
  Link& link;
  bool initiating;

  Region mine(size_t offset, size_t length) const { return station.memory.part(offset, length); }
  Region theirs(size_t offset, size_t length) const {
    return station.theirs.moved(static_cast<int64_t>(offset), static_cast<uint32_t>(length));
  }
  void fill(size_t length, uint32_t seed) const {
    fill_pattern(station.memory.bytes(0, length), seed);
  }
  void must_have(size_t offset, size_t length, uint32_t seed) const {
    BL_MUST(has_pattern(station.memory.bytes(offset, length), seed));
  }
  uint64_t post_send(const SendWork& work) const {
    return station.ledger.post_work(station.qp, work);
  }
  uint64_t post_recv(const Region& into) const {
    return station.ledger.post_work(station.qp, recv_work(into));
  }
  ibv_wc sent(uint64_t number, ibv_wc_status wanted = IBV_WC_SUCCESS) const {
    return station.ledger.sent(number, wanted);
  }
  ibv_wc received(uint64_t number, ibv_wc_status wanted = IBV_WC_SUCCESS) const {
    return station.ledger.received(number, link, wanted);
  }
};

void play_write(const Scene& scene, size_t size, uint32_t seed) {
  step("WRITE");
  if (scene.initiating) {
    scene.fill(size, seed);
    scene.sent(scene.post_send(write_work(scene.mine(0, size), scene.theirs(0, size))));
  }
  scene.link.meet();
  scene.must_have(0, size, seed);
}

void play_write_imm(const Scene& scene, uint32_t seed) {
  step("WRITE with immediate");
  const uint64_t receive = scene.initiating ? 0 : scene.post_recv(scene.mine(0, 0));
  scene.link.meet();
  if (scene.initiating) {
    scene.fill(kSmall, seed);
    scene.sent(scene.post_send(
        write_imm_work(scene.mine(0, kSmall), scene.theirs(0, kSmall), kImmediate)));
  } else {
    BL_MUST(scene.received(receive).imm_data == kImmediate);
    scene.must_have(0, kSmall, seed);
  }
  scene.link.meet();
}

void play_send(const Scene& scene, uint32_t seed) {
  step("SEND");
  const uint64_t receive = scene.initiating ? 0 : scene.post_recv(scene.mine(0, kSmall));
  scene.link.meet();
  if (scene.initiating) {
    scene.fill(kSmall, seed);
    scene.sent(scene.post_send(send_work(scene.mine(0, kSmall))));
  } else {
    BL_MUST(scene.received(receive).byte_len == kSmall);
    scene.must_have(0, kSmall, seed);
  }
  scene.link.meet();
}

void play_read(const Scene& scene, uint32_t seed) {
  step("READ");
  if (!scene.initiating) scene.fill(kSmall, seed);
  scene.link.meet();
  if (scene.initiating) {
    scene.sent(
        scene.post_send(read_work(scene.mine(kBackOffset, kSmall), scene.theirs(0, kSmall))));
    scene.must_have(kBackOffset, kSmall, seed);
  }
  scene.link.meet();
}

// The initiator sends before there is a receive, is told to wait, and gets through in the end.
void play_rnr(const Scene& scene) {
  step("RNR");
  if (scene.initiating) {
    const uint64_t request = scene.post_send(send_work(scene.mine(0, 64)));
    scene.link.meet();
    scene.sent(request);
  } else {
    scene.link.meet();
    scene.received(scene.post_recv(scene.mine(0, 64)));
  }
  scene.link.meet();
}

// Both at once, so that both push into both completion queues.
void play_storm(const Scene& scene) {
  step("storm");
  constexpr size_t kCount = 16;
  std::array<uint64_t, kCount> receives{};
  for (uint64_t& receive : receives) receive = scene.post_recv(scene.mine(0, 64));
  scene.link.meet();
  std::array<uint64_t, kCount> sends{};
  for (uint64_t& send : sends) send = scene.post_send(send_work(scene.mine(0, 64)));
  for (const uint64_t send : sends) scene.sent(send);
  for (const uint64_t receive : receives) scene.received(receive);
  scene.link.meet();
}

// A forbidden access: an error here, a broken queue pair with flushed receives there.
void play_violation(const Scene& scene) {
  step("access violation");
  const uint64_t receive = scene.initiating ? 0 : scene.post_recv(scene.mine(0, 64));
  scene.link.meet();
  if (scene.initiating) {
    Region wrong = scene.theirs(0, 64);
    wrong.rkey ^= 1;
    scene.sent(scene.post_send(write_work(scene.mine(0, 64), wrong)), IBV_WC_REM_ACCESS_ERR);
  } else {
    scene.received(receive, IBV_WC_WR_FLUSH_ERR);
  }
  scene.link.meet();
  scene.station.settle();
  scene.station.connect_to(scene.link);
}

// The initiator's port spoils its first payload and fails its second request.
void play_armed_faults(const Scene& scene) {
  step("armed faults");
  if (scene.initiating) {
    scene.fill(kSmall, 90);
    const SendWork work = write_work(scene.mine(0, kSmall), scene.theirs(0, kSmall));
    scene.sent(scene.post_send(work));
    scene.sent(scene.post_send(work), IBV_WC_REM_OP_ERR);
  }
  scene.link.meet();
  if (!scene.initiating) BL_MUST(!has_pattern(scene.station.memory.bytes(0, kSmall), 90));
  scene.station.settle();
  scene.station.connect_to(scene.link);
}

// Completions beyond the capacity of a queue of the target's, which dies of it.
void play_overrun(const Scene& scene) {
  step("CQ overrun");
  Station& station = scene.station;
  const CqPtr tiny = make_cq_of(station.context.get(), scene.initiating ? 16 : 1);
  const QpPtr qp = make_shared_cq_qp(station.pd.get(), tiny.get());
  connect(qp.get(), scene.link.exchange(address_of(qp.get(), kQuickWire)), kQuickWire);
  constexpr int kMessages = 2;
  for (int i = 0; !scene.initiating && i < kMessages; ++i) {
    BL_MUST_OK(post(qp.get(), recv_work(scene.mine(0, 64))));
  }
  scene.link.meet();
  Ledger ledger(tiny.get());
  for (int i = 0; scene.initiating && i < kMessages; ++i) {
    ledger.sent(ledger.post_work(qp.get(), send_work(scene.mine(0, 64))));
  }
  scene.link.meet();
  if (!scene.initiating)
    BL_MUST(wait_for_event(station.context.get(), IBV_EVENT_CQ_ERR).element.cq == tiny.get());
  scene.link.meet();
}

// The target deregisters what the initiator is writing into: the writes before that succeed, the
// next is refused, the rest are flushed.
void play_deregistration(const Scene& scene) {
  step("deregistration");
  Buffer target(scene.station.pd.get(), kSmall);
  const Region theirs = scene.link.exchange(target.all());
  for (int i = 0; scene.initiating && i < 8; ++i) {
    scene.post_send(write_work(scene.mine(0, kSmall), theirs));
  }
  if (!scene.initiating) target.deregister();
  scene.link.meet();
  scene.station.settle();
  scene.station.connect_to(scene.link);
}

void play_moves(Station& station, Link& link, bool initiating, uint32_t seed) {
  const Scene scene{station, link, initiating};
  play_write(scene, kSmall, seed);
  play_write_imm(scene, seed + 1);
  play_send(scene, seed + 2);
  play_read(scene, seed + 3);
}

}  // namespace

void play_transfers(World& world, Link& link, int role) {
  uint32_t seed = 1;
  for (Station* station : {&world.plain, &world.shaped}) {
    step("connecting");
    station->connect_to(link);
    for (const int initiator : {0, 1}) {
      play_moves(*station, link, role == initiator, seed);
      seed += 10;
    }
  }
}

void play_everything(World& world, Link& link, int role) {
  play_transfers(world, link, role);
  world.armed.connect_to(link);
  for (const int initiator : {0, 1}) {
    const Scene plain{world.plain, link, role == initiator};
    play_write(plain, kBig, 50);
    play_rnr(plain);
    play_storm(plain);
    play_deregistration(plain);
    play_overrun(plain);
    play_violation(plain);
    play_armed_faults({world.armed, link, role == initiator});
  }
}

}  // namespace beeline::test
