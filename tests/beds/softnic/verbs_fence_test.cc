// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs and memory regions that are destroyed during traffic. When these calls have returned,
// no byte arrives any more; recovery depends on that.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/pages.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kBig = 4u << 20;
constexpr std::size_t kPage = 4096;
constexpr std::uint8_t kPayload = 0xFF;
constexpr std::uint8_t kMark = 0x5A;
constexpr std::size_t kRounds = 16;

// The ways in which an end stops receiving from its peer.
enum class Fence { kError, kReset, kDestroy, kDeregister };

void raise_fence(Fence fence, Endpoint& end, Buffer& buffer) {
  switch (fence) {
    case Fence::kError: BL_MUST_OK(modify_state(end.qp, IBV_QPS_ERR)); return;
    case Fence::kReset: BL_MUST_OK(modify_state(end.qp, IBV_QPS_RESET)); return;
    case Fence::kDestroy: end.owned_qp.reset(); return;
    case Fence::kDeregister: buffer.deregister(); return;
  }
}

// Marks a buffer while a message is written into it in ascending order. The marks are set quickly,
// the one that the message reaches next first, so a late piece overwrites them.
class Tripwire {
 public:
  explicit Tripwire(Buffer& buffer) : buffer_(buffer) {}

  // The position of the message at which this round interrupts it, different in each round.
  static std::size_t place(std::size_t round) { return kBig / kRounds * round / kPage * kPage; }

  void wait_for_message(std::size_t place) {
    wait_until([&] { return buffer_.peek(place) == kPayload; }, "the running message");
  }
  void stretch(std::size_t place) {
    for (std::size_t i = 0; i < kBig / kPage; ++i) {
      const std::size_t at = (place + (i + 1) * kPage) % kBig;
      std::atomic_ref<std::uint8_t>(buffer_.data()[at]).store(kMark, std::memory_order_relaxed);
    }
  }
  bool is_whole() {
    for (std::size_t at = 0; at < kBig; at += kPage) {
      if (buffer_.peek(at) != kMark) return false;
    }
    return true;
  }

 private:
  Buffer& buffer_;
};

}  // namespace

TEST_CASE("fence: after a deregistration no byte of a running message arrives",
          "[softnic][fence]") {
  const Fence fence = GENERATE(Fence::kError, Fence::kReset, Fence::kDestroy, Fence::kDeregister);
  const auto opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_SEND);
  constexpr std::uint32_t kReceives = 8192;  // more than are consumed before the fence
  for (std::size_t round = 0; round < kRounds; ++round) {
    INFO("fence " << static_cast<int>(fence) << ", opcode " << opcode << ", round " << round);
    Pair pair({.clock_scale = 0.001,
               .shape = {.recv_depth = kReceives, .cqe = 2 * kReceives},
               .wire = {.retry_cnt = 1}});
    Buffer from = pair.a.buffer(kBig);
    Buffer into = pair.b.buffer(kBig);
    std::memset(from.data(), kPayload, kBig);
    BL_MUST_OK(post_list(pair.b.qp, std::vector<RecvWork>(kReceives, recv_work(into.all()))));
    SendWork work = write_work(from.all(), into.all());
    work.opcode = opcode;
    ibv_wc_status last = IBV_WC_SUCCESS;
    std::thread writer([&] {
      BL_MUST_OK(post_list(pair.a.qp, std::vector<SendWork>(4, work)));
      while (last == IBV_WC_SUCCESS) {
        last = poll_one(pair.a.send_cq.get()).status;
        BL_MUST_OK(post(pair.a.qp, work));
      }
    });
    Tripwire wire(into);
    const std::size_t place = Tripwire::place(round);
    wire.wait_for_message(place);
    raise_fence(fence, pair.b, into);
    wire.stretch(place);
    writer.join();
    CHECK(wire.is_whole());
    CHECK(last != IBV_WC_SUCCESS);
  }
}

TEST_CASE("fence: after a deregistration no byte of a running READ arrives", "[softnic][fence]") {
  const Fence fence = GENERATE(Fence::kError, Fence::kReset, Fence::kDestroy);
  for (std::size_t round = 0; round < kRounds; ++round) {
    INFO("fence " << static_cast<int>(fence) << ", round " << round);
    Pair pair;
    Buffer into = pair.a.buffer(kBig);
    Buffer from = pair.b.buffer(kBig);
    std::memset(from.data(), kPayload, kBig);
    for (int i = 0; i < 8; ++i) BL_MUST_OK(post(pair.a.qp, read_work(into.all(), from.all())));
    Tripwire wire(into);
    const std::size_t place = Tripwire::place(round);
    wire.wait_for_message(place);
    raise_fence(fence, pair.a, into);
    wire.stretch(place);
    // Other traffic of the same device gives a late piece its chance.
    Endpoint c("softnic0");
    connect(c.qp, address_of(c.qp));
    for (std::uint64_t i = 0; i < 20; ++i) {
      BL_MUST_OK(post(c.qp, nothing_work(i)));
      must_complete(c.send_cq.get(), i);
    }
    CHECK(wire.is_whole());
  }
}

TEST_CASE("fence: a process may unmap memory that it deregistered under traffic",
          "[softnic][fence]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const TestFabric fabric;
  const auto writer = [](Peer& peer) {
    Endpoint end("softnic0");
    connect(end.qp, peer.exchange(address_of(end.qp)));
    peer.meet();
    Buffer from = end.buffer(kBig);
    std::memset(from.data(), kPayload, kBig);
    const Region target = peer.receive<Region>(1);
    ibv_wc wc{};
    do {
      BL_MUST_OK(post(end.qp, write_work(from.all(), target)));
      wc = poll_one(end.send_cq.get());
    } while (wc.status == IBV_WC_SUCCESS);
    BL_MUST(wc.status == IBV_WC_REM_ACCESS_ERR);
  };
  const auto target = [](Peer& peer) {
    Endpoint end("softnic1");
    connect(end.qp, peer.exchange(address_of(end.qp)));
    peer.meet();
    Pages pages(kBig);
    MrPtr mr(ibv_reg_mr(end.pd.get(), pages.data(), kBig, kAllAccess));
    BL_MUST(mr != nullptr);
    peer.send(0, Region{reinterpret_cast<std::uint64_t>(pages.data()), kBig, mr->lkey, mr->rkey});
    std::atomic_ref<std::uint8_t> middle(pages.data()[kBig / 2]);
    wait_until([&] { return middle.load() == kPayload; }, "the running write");
    mr.reset();
    pages.unmap(0, kBig);  // a late byte would crash this process or the writer
    wait_for_state(end.qp, IBV_QPS_ERR);
  };
  run_peers(mode, {writer, target});
}

namespace {

constexpr int kDestructions = 60;
constexpr std::size_t kStreamed = 256u << 10;

// The event is left unacknowledged: destroying the object that it names waits until it is
// acknowledged.
ibv_async_event unacknowledged_event(ibv_context* context) {
  wait_until([&] { return has_event(context); }, "an asynchronous event");
  ibv_async_event event{};
  BL_MUST(ibv_get_async_event(context, &event) == 0);
  return event;
}

void stream_into_the_dying(Peer& peer) {
  const Nic nic("softnic0");
  Buffer from(nic.pd.get(), kStreamed);
  std::memset(from.data(), kPayload, kStreamed);
  for (int round = 0; round < kDestructions; ++round) {
    const QpPtr qp = make_qp(nic);
    connect(qp.get(), peer.exchange(address_of(qp.get())), {.retry_cnt = 0});
    peer.meet();
    const Region target = peer.receive<Region>(1);
    std::vector<SendWork> stream(40, unsignaled(write_work(from.all(), target)));
    stream.push_back(nothing_work(1));
    BL_MUST_OK(post_list(qp.get(), stream));
    poll_one(nic.send_cq.get());
    peer.meet();
  }
}

bool is_still_written(const Pages& pages) {
  const auto start = Clock::now();
  while (seconds_since(start) < 0.0005) {
    for (std::size_t at = 0; at < kStreamed; at += 512) {
      if (std::atomic_ref<std::uint8_t>(pages.data()[at]).load() != 0) return true;
    }
  }
  return false;
}

void die_under_a_stream(Peer& peer) {
  const Nic nic("softnic1");
  const Pages pages(kStreamed);
  for (int round = 0; round < kDestructions; ++round) {
    QpPtr qp = make_qp(nic);
    to_init(qp.get());
    to_rtr(qp.get(),
           peer.exchange(address_of(qp.get())));  // the first message causes an event there
    peer.meet();
    std::memset(pages.data(), 0, kStreamed);
    MrPtr mr(ibv_reg_mr(nic.pd.get(), pages.data(), kStreamed, kAllAccess));
    BL_MUST(mr != nullptr);
    peer.send(0,
              Region{reinterpret_cast<std::uint64_t>(pages.data()), kStreamed, mr->lkey, mr->rkey});
    ibv_async_event event = unacknowledged_event(nic.context.get());  // destroying waits for it
    BL_MUST(event.event_type == IBV_EVENT_COMM_EST);
    {
      const std::jthread destroyer([&] { qp.reset(); });
      spin(round % 20 * 8000);
      mr.reset();
      std::memset(pages.data(), 0, kStreamed);
      const bool late = is_still_written(pages);
      ibv_ack_async_event(&event);
      BL_MUST(!late);
    }
    peer.meet();
  }
}

}  // namespace

TEST_CASE("fence: nothing arrives in deregistered memory while a queue pair is destroyed",
          "[softnic][fence]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const TestFabric fabric(0.001);
  run_peers(mode, {stream_into_the_dying, die_under_a_stream});
}
