// SPDX-License-Identifier: Apache-2.0
//
// Every step runs twice, with the roles of initiator and target exchanged. `step` records the
// current step, for the report of a run that hangs.
#include "tests/beds/fault/scenario.h"

#include "tests/beds/fault/step.h"

namespace beeline::test {
namespace {

constexpr size_t kSmall = 4096;
constexpr size_t kBig = 600'000;         // several pieces, which are copied in another way
constexpr size_t kBackOffset = 700'000;  // where a READ writes its data
constexpr uint32_t kImmediate = 0x5eed;

// One of the two workers, on one of its devices, during a step.
struct Side {
  DeviceEnd& end;
  Link& link;
  bool initiating;

  Region mine(size_t offset, size_t length) const { return end.memory.part(offset, length); }
  Region theirs(size_t offset, size_t length) const {
    return end.theirs.moved(static_cast<int64_t>(offset), static_cast<uint32_t>(length));
  }
  void fill(size_t length, uint32_t seed) const { fill_pattern(end.memory.bytes(0, length), seed); }
  void must_have(size_t offset, size_t length, uint32_t seed) const {
    BL_MUST(has_pattern(end.memory.bytes(offset, length), seed));
  }
  uint64_t post_send(const SendWork& work) const { return end.ledger.post_work(end.qp, work); }
  uint64_t post_recv(const Region& into) const {
    return end.ledger.post_work(end.qp, recv_work(into));
  }
  ibv_wc sent(uint64_t number, ibv_wc_status wanted = IBV_WC_SUCCESS) const {
    return end.ledger.sent(number, wanted);
  }
  ibv_wc received(uint64_t number, ibv_wc_status wanted = IBV_WC_SUCCESS) const {
    return end.ledger.received(number, link, wanted);
  }
};

void play_write(const Side& side, size_t size, uint32_t seed) {
  step("WRITE");
  if (side.initiating) {
    side.fill(size, seed);
    side.sent(side.post_send(write_work(side.mine(0, size), side.theirs(0, size))));
  }
  side.link.meet();
  side.must_have(0, size, seed);
}

void play_write_imm(const Side& side, uint32_t seed) {
  step("WRITE with immediate");
  const uint64_t receive = side.initiating ? 0 : side.post_recv(side.mine(0, 0));
  side.link.meet();
  if (side.initiating) {
    side.fill(kSmall, seed);
    side.sent(
        side.post_send(write_imm_work(side.mine(0, kSmall), side.theirs(0, kSmall), kImmediate)));
  } else {
    BL_MUST(side.received(receive).imm_data == kImmediate);
    side.must_have(0, kSmall, seed);
  }
  side.link.meet();
}

void play_send(const Side& side, uint32_t seed) {
  step("SEND");
  const uint64_t receive = side.initiating ? 0 : side.post_recv(side.mine(0, kSmall));
  side.link.meet();
  if (side.initiating) {
    side.fill(kSmall, seed);
    side.sent(side.post_send(send_work(side.mine(0, kSmall))));
  } else {
    BL_MUST(side.received(receive).byte_len == kSmall);
    side.must_have(0, kSmall, seed);
  }
  side.link.meet();
}

void play_read(const Side& side, uint32_t seed) {
  step("READ");
  if (!side.initiating) side.fill(kSmall, seed);
  side.link.meet();
  if (side.initiating) {
    side.sent(side.post_send(read_work(side.mine(kBackOffset, kSmall), side.theirs(0, kSmall))));
    side.must_have(kBackOffset, kSmall, seed);
  }
  side.link.meet();
}

// The initiator sends before there is a receive, is told to retry, and succeeds in the end.
void play_rnr(const Side& side) {
  step("RNR");
  if (side.initiating) {
    const uint64_t request = side.post_send(send_work(side.mine(0, 64)));
    side.link.meet();
    side.sent(request);
  } else {
    side.link.meet();
    side.received(side.post_recv(side.mine(0, 64)));
  }
  side.link.meet();
}

// Both workers send at once, so that both write to both completion queues.
void play_storm(const Side& side) {
  step("storm");
  constexpr size_t kCount = 16;
  std::array<uint64_t, kCount> receives{};
  for (uint64_t& receive : receives) receive = side.post_recv(side.mine(0, 64));
  side.link.meet();
  std::array<uint64_t, kCount> sends{};
  for (uint64_t& send : sends) send = side.post_send(send_work(side.mine(0, 64)));
  for (const uint64_t send : sends) side.sent(send);
  for (const uint64_t receive : receives) side.received(receive);
  side.link.meet();
}

// A forbidden access: the initiator gets an error, and the target's queue pair is broken and
// flushes its receives.
void play_violation(const Side& side) {
  step("access violation");
  const uint64_t receive = side.initiating ? 0 : side.post_recv(side.mine(0, 64));
  side.link.meet();
  if (side.initiating) {
    Region wrong = side.theirs(0, 64);
    wrong.rkey ^= 1;
    side.sent(side.post_send(write_work(side.mine(0, 64), wrong)), IBV_WC_REM_ACCESS_ERR);
  } else {
    side.received(receive, IBV_WC_WR_FLUSH_ERR);
  }
  side.link.meet();
  side.end.settle();
  side.end.connect_to(side.link);
}

// The initiator's port corrupts its first payload and fails its second request.
void play_armed_faults(const Side& side) {
  step("armed faults");
  if (side.initiating) {
    side.fill(kSmall, 90);
    const SendWork work = write_work(side.mine(0, kSmall), side.theirs(0, kSmall));
    side.sent(side.post_send(work));
    side.sent(side.post_send(work), IBV_WC_REM_OP_ERR);
  }
  side.link.meet();
  if (!side.initiating) BL_MUST(!has_pattern(side.end.memory.bytes(0, kSmall), 90));
  side.end.settle();
  side.end.connect_to(side.link);
}

// More completions than a queue of the target can hold, which breaks the queue.
void play_overrun(const Side& side) {
  step("CQ overrun");
  DeviceEnd& end = side.end;
  const CqPtr tiny = make_cq_of(end.context.get(), side.initiating ? 16 : 1);
  const QpPtr qp = make_shared_cq_qp(end.pd.get(), tiny.get());
  connect(qp.get(), side.link.exchange(address_of(qp.get(), kQuickWire)), kQuickWire);
  constexpr int kMessages = 2;
  for (int i = 0; !side.initiating && i < kMessages; ++i) {
    BL_MUST_OK(post(qp.get(), recv_work(side.mine(0, 64))));
  }
  side.link.meet();
  Ledger ledger(tiny.get());
  for (int i = 0; side.initiating && i < kMessages; ++i) {
    ledger.sent(ledger.post_work(qp.get(), send_work(side.mine(0, 64))));
  }
  side.link.meet();
  if (!side.initiating)
    BL_MUST(wait_for_event(end.context.get(), IBV_EVENT_CQ_ERR).element.cq == tiny.get());
  side.link.meet();
}

// The target deregisters memory while the initiator writes to it: earlier writes succeed, the next
// is refused, and the rest are flushed.
void play_deregistration(const Side& side) {
  step("deregistration");
  Buffer target(side.end.pd.get(), kSmall);
  const Region theirs = side.link.exchange(target.all());
  for (int i = 0; side.initiating && i < 8; ++i) {
    side.post_send(write_work(side.mine(0, kSmall), theirs));
  }
  if (!side.initiating) target.deregister();
  side.link.meet();
  side.end.settle();
  side.end.connect_to(side.link);
}

void play_moves(DeviceEnd& end, Link& link, bool initiating, uint32_t seed) {
  const Side side{end, link, initiating};
  play_write(side, kSmall, seed);
  play_write_imm(side, seed + 1);
  play_send(side, seed + 2);
  play_read(side, seed + 3);
}

}  // namespace

void play_transfers(DeviceEnds& ends, Link& link, int role) {
  uint32_t seed = 1;
  for (DeviceEnd* end : {&ends.plain, &ends.shaped}) {
    step("connecting");
    end->connect_to(link);
    for (const int initiator : {0, 1}) {
      play_moves(*end, link, role == initiator, seed);
      seed += 10;
    }
  }
}

void play_everything(DeviceEnds& ends, Link& link, int role) {
  play_transfers(ends, link, role);
  ends.armed.connect_to(link);
  for (const int initiator : {0, 1}) {
    const Side plain{ends.plain, link, role == initiator};
    play_write(plain, kBig, 50);
    play_rnr(plain);
    play_storm(plain);
    play_deregistration(plain);
    play_overrun(plain);
    play_violation(plain);
    play_armed_faults({ends.armed, link, role == initiator});
  }
}

}  // namespace beeline::test
