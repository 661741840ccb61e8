// SPDX-License-Identifier: Apache-2.0
//
// Completion channels, with which programs sleep until there is something to poll.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>

#include "tests/beds/softnic/arena_view.h"
#include "tests/beds/softnic/sleeper.h"

using namespace beeline::test;

namespace {

// How long to wait to be sure that no event comes. It is longer than the period of the watch job.
constexpr int kSilenceMs = 100;

bool is_silent(ibv_comp_channel* channel) {
  pollfd waiting{channel->fd, POLLIN, 0};
  return ::poll(&waiting, 1, kSilenceMs) == 0;
}

// A plain sender, and a receiver that sleeps.
struct ChannelScene {
  explicit ChannelScene(const Wire& wire = {}, double clock_scale = 1.0)
      : fabric(clock_scale), a("softnic0"), b("softnic1") {
    connect_both(a.qp, b.qp, wire);
    for (std::uint64_t i = 0; i < 16; ++i) BL_MUST_OK(post(b.qp, RecvWork{.wr_id = i}));
  }

  ibv_comp_channel* channel() { return b.channel.get(); }
  void send(unsigned flags = 0, ibv_wr_opcode opcode = IBV_WR_SEND) {
    BL_MUST_OK(post(a.qp, SendWork{.opcode = opcode, .flags = flags | IBV_SEND_SIGNALED}));
    must_complete(a.send_cq.get(), 0);
  }

  TestFabric fabric;
  Endpoint a;
  Sleeper b;
};

}  // namespace

TEST_CASE("channel: an armed queue causes one event", "[softnic][channel]") {
  ChannelScene scene;
  CHECK(scene.b.recv_cq->channel == scene.channel());
  scene.send();
  CHECK_FALSE(has_cq_event(scene.channel()));
  arm(scene.b.recv_cq.get());  // there is a completion, but no new one
  CHECK(is_silent(scene.channel()));
  scene.send();
  ibv_cq* cq = nullptr;
  void* tag = nullptr;
  REQUIRE(has_cq_event(scene.channel()));
  REQUIRE(ibv_get_cq_event(scene.channel(), &cq, &tag) == 0);
  CHECK(cq == scene.b.recv_cq.get());
  CHECK(tag == &scene.b.recv_tag);
  ibv_ack_cq_events(cq, 1);
  scene.send();
  scene.send();
  CHECK(is_silent(scene.channel()));
  CHECK(poll_many(cq, 4)[3].wr_id == 3);
}

TEST_CASE("channel: arming twice causes one event", "[softnic][channel]") {
  ChannelScene scene;
  arm(scene.b.recv_cq.get());
  arm(scene.b.recv_cq.get());
  scene.send();
  scene.send();
  scene.b.must_wake_for(scene.b.recv_cq);
  CHECK(is_silent(scene.channel()));
}

TEST_CASE("channel: each arming causes one event", "[softnic][channel]") {
  ChannelScene scene;
  for (std::uint64_t i = 0; i < 200; ++i) {
    arm(scene.b.recv_cq.get());
    scene.send();
    REQUIRE(has_cq_event(scene.channel()));
    scene.b.must_wake_for(scene.b.recv_cq);
    REQUIRE_FALSE(has_cq_event(scene.channel()));
    must_complete(scene.b.recv_cq.get(), i % 16);
    BL_MUST_OK(post(scene.b.qp, RecvWork{.wr_id = i % 16}));
  }
}

TEST_CASE("channel: the event of a completion that was polled first can be read",
          "[softnic][channel]") {
  ChannelScene scene;
  arm(scene.b.recv_cq.get());
  scene.send();
  must_complete(scene.b.recv_cq.get(), 0);
  scene.b.must_wake_for(scene.b.recv_cq);
}

TEST_CASE("channel: solicited-only wakes for solicited completions", "[softnic][channel]") {
  ChannelScene scene;
  arm(scene.b.recv_cq.get(), 1);
  scene.send();
  scene.send(0, IBV_WR_RDMA_WRITE_WITH_IMM);
  CHECK(is_silent(scene.channel()));
  SECTION("a SEND") { scene.send(IBV_SEND_SOLICITED); }
  SECTION("a SEND with immediate") { scene.send(IBV_SEND_SOLICITED, IBV_WR_SEND_WITH_IMM); }
  SECTION("a WRITE with immediate") { scene.send(IBV_SEND_SOLICITED, IBV_WR_RDMA_WRITE_WITH_IMM); }
  CHECK(has_cq_event(scene.channel()));
  scene.b.must_wake_for(scene.b.recv_cq);
  scene.send(IBV_SEND_SOLICITED);
  CHECK(is_silent(scene.channel()));
}

TEST_CASE("channel: solicited-only does not wake for the sender's own successes",
          "[softnic][channel]") {
  ChannelScene scene;
  for (std::uint64_t i = 0; i < 4; ++i) BL_MUST_OK(post(scene.a.qp, RecvWork{.wr_id = i}));
  arm(scene.b.send_cq.get(), 1);
  SendWork work{.opcode = IBV_WR_SEND, .wr_id = 1};
  work.flags |= IBV_SEND_SOLICITED;
  BL_MUST_OK(post(scene.b.qp, work));
  must_complete(scene.b.send_cq.get(), 1);
  CHECK(is_silent(scene.channel()));
}

TEST_CASE("channel: solicited-only wakes for a failure", "[softnic][channel]") {
  ChannelScene scene;
  SECTION("of a send") {
    arm(scene.b.send_cq.get(), 1);
    SendWork work = nothing_work(7);
    work.remote_addr = 8;
    work.local = {{1, 1, 0x12345600}};
    BL_MUST_OK(post(scene.b.qp, work));
    scene.b.must_wake_for(scene.b.send_cq);
    CHECK(poll_one(scene.b.send_cq.get()).status == IBV_WC_LOC_PROT_ERR);
  }
  SECTION("of a receive that is flushed") {
    arm(scene.b.recv_cq.get(), 1);
    REQUIRE(modify_state(scene.b.qp, IBV_QPS_ERR) == 0);
    scene.b.must_wake_for(scene.b.recv_cq);
    CHECK(poll_one(scene.b.recv_cq.get()).status == IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_CASE("channel: arming for solicited completions does not narrow an earlier arming",
          "[softnic][channel]") {
  ChannelScene scene;
  const bool solicited_first = GENERATE(true, false);
  arm(scene.b.recv_cq.get(), solicited_first ? 1 : 0);
  arm(scene.b.recv_cq.get(), solicited_first ? 0 : 1);
  scene.send();
  CHECK(has_cq_event(scene.channel()));
  scene.b.must_wake_for(scene.b.recv_cq);
}

TEST_CASE("channel: a non-blocking one returns at once", "[softnic][channel]") {
  ChannelScene scene;
  const int flags = fcntl(scene.channel()->fd, F_GETFL);
  REQUIRE(fcntl(scene.channel()->fd, F_SETFL, flags | O_NONBLOCK) == 0);
  ibv_cq* cq = nullptr;
  void* tag = nullptr;
  errno = 0;
  CHECK(ibv_get_cq_event(scene.channel(), &cq, &tag) == -1);
  CHECK(errno == EAGAIN);
  arm(scene.b.recv_cq.get());
  scene.send();
  CHECK(ibv_get_cq_event(scene.channel(), &cq, &tag) == 0);
  CHECK(cq == scene.b.recv_cq.get());
  ibv_ack_cq_events(cq, 1);
}

TEST_CASE("channel: a waiting thread is woken", "[softnic][channel]") {
  ChannelScene scene;
  arm(scene.b.recv_cq.get());
  ibv_cq* cq = nullptr;
  std::atomic<bool> begun{false};
  std::thread waiter([&] {
    void* tag = nullptr;
    begun = true;
    if (ibv_get_cq_event(scene.channel(), &cq, &tag) == 0) ibv_ack_cq_events(cq, 1);
  });
  wait_until([&] { return begun.load(); }, "the thread");
  scene.send();
  waiter.join();
  CHECK(cq == scene.b.recv_cq.get());
}

TEST_CASE("channel: destroying a queue waits for its events to be acknowledged",
          "[softnic][channel]") {
  ChannelScene scene;
  const CqPtr unused = make_cq(scene.channel(), 16);
  arm(scene.b.recv_cq.get());
  scene.send();
  arm(scene.b.recv_cq.get());
  scene.send();
  ibv_cq* cq = next_cq_event(scene.channel());
  REQUIRE(next_cq_event(scene.channel()) == cq);
  scene.b.owned_qp.reset();
  std::atomic<bool> begun{false};
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    begun = true;
    scene.b.recv_cq.reset();
    destroyed = true;
  });
  wait_until([&] { return begun.load(); }, "the thread");
  ibv_ack_cq_events(cq, 1);  // one of two
  // Passes some time: a hundred round trips of other traffic on the same device.
  Endpoint c("softnic1");
  connect(c.qp, address_of(c.qp));
  for (std::uint64_t i = 0; i < 100; ++i) {
    BL_MUST_OK(post(c.qp, nothing_work(i)));
    must_complete(c.send_cq.get(), i);
  }
  const bool too_early = destroyed;
  ibv_ack_cq_events(cq, 1);
  destroyer.join();
  CHECK_FALSE(too_early);
}

TEST_CASE("channel: events may be acknowledged many at a time", "[softnic][channel]") {
  ChannelScene scene;
  for (int i = 0; i < 10; ++i) {
    arm(scene.b.recv_cq.get());
    scene.send();
    REQUIRE(next_cq_event(scene.channel()) == scene.b.recv_cq.get());
  }
  ibv_ack_cq_events(scene.b.recv_cq.get(), 10);
  scene.b.owned_qp.reset();
  scene.b.recv_cq.reset();  // hangs if one is missing
}

TEST_CASE("channel: unread events are dropped with their queue", "[softnic][channel]") {
  ChannelScene scene;
  arm(scene.b.recv_cq.get());
  scene.send();
  arm(scene.b.send_cq.get());
  scene.b.owned_qp.reset();
  scene.b.recv_cq.reset();
  // Otherwise poll(2) would report an event, and the program would hang when it reads it.
  CHECK_FALSE(has_cq_event(scene.channel()));
  // Events of other queues stay in the channel.
  const QpPtr loop = scene.b.make_qp(scene.b.send_cq, scene.b.send_cq);
  connect(loop.get(), address_of(loop.get()));
  BL_MUST_OK(post(loop.get(), nothing_work(1)));
  scene.b.must_wake_for(scene.b.send_cq);
}

TEST_CASE("channel: several queues share one, and each event names its queue",
          "[softnic][channel]") {
  constexpr std::size_t kQueues = 5;
  const TestFabric fabric;
  const Nic nic("softnic0");
  const ChannelPtr channel = make_channel(nic.context.get());
  std::vector<int> tags(kQueues);
  std::vector<CqPtr> cqs;
  std::vector<QpPtr> qps;
  for (std::size_t i = 0; i < kQueues; ++i) {
    cqs.push_back(make_cq(channel.get(), 16, &tags[i]));
    ibv_qp_init_attr attr = init_attr(nic);
    attr.send_cq = cqs.back().get();
    qps.emplace_back(ibv_create_qp(nic.pd.get(), &attr));
    BL_MUST(qps.back() != nullptr);
    connect(qps.back().get(), address_of(qps.back().get()));
    arm(cqs.back().get());
  }
  for (const std::size_t i : {3u, 0u, 4u, 1u}) BL_MUST_OK(post(qps[i].get(), nothing_work(i)));
  for (const std::size_t i : {3u, 0u, 4u, 1u}) must_complete(cqs[i].get(), i);
  for (const std::size_t i : {3u, 0u, 4u, 1u}) {
    ibv_cq* const cq = next_cq_event(channel.get());
    CHECK(cq == cqs[i].get());
    CHECK(cq->cq_context == &tags[i]);
    ibv_ack_cq_events(cq, 1);
  }
  CHECK(is_silent(channel.get()));
}

TEST_CASE("channel: a failed retry wakes the sender", "[softnic][channel]") {
  const TestFabric fabric(0.01);
  Sleeper a("softnic0");
  const Endpoint b("softnic1");
  const Wire wire{.timeout = 17, .retry_cnt = 1};
  connect_both(a.qp, b.qp, wire);
  BL_MUST_OK(modify_state(b.qp, IBV_QPS_RESET));
  arm(a.send_cq.get());
  BL_MUST_OK(post(a.qp, nothing_work(1)));
  a.must_wake_for(a.send_cq);
  CHECK(poll_one(a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
}

TEST_CASE("channel: a large message wakes both ends without any polling", "[softnic][channel]") {
  constexpr std::size_t kBig = 8u << 20;
  const TestFabric fabric;
  Sleeper a("softnic0");
  Sleeper b("softnic1");
  connect_both(a.qp, b.qp);
  Buffer from(a.pd.get(), kBig);
  Buffer into(b.pd.get(), kBig);
  from.fill(1);
  arm(a.send_cq.get());
  arm(b.recv_cq.get());
  BL_MUST_OK(post(b.qp, recv_work(into.all(), 5)));
  BL_MUST_OK(post(a.qp, send_work(from.all(), 6)));
  a.must_wake_for(a.send_cq);
  b.must_wake_for(b.recv_cq);
  must_complete(a.send_cq.get(), 6);
  must_complete(b.recv_cq.get(), 5);
  CHECK(into.has(1));
}

namespace {

// No descriptors can be opened while it exists.
class NoDescriptors {
 public:
  NoDescriptors() {
    BL_MUST(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit none{0, before_.rlim_max};
    BL_MUST(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::size_t pipes_in(const std::string& dir) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.is_fifo()) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("channel: a program is woken although its event could not be sent at once",
          "[softnic][channel]") {
  ChannelScene scene;
  scene.send();  // all files are open now
  arm(scene.b.recv_cq.get());
  {
    const NoDescriptors none;
    scene.send();
  }
  scene.b.must_wake_for(scene.b.recv_cq);
}

TEST_CASE("channel: a reset of one queue pair does not suppress another's event",
          "[softnic][channel]") {
  ChannelScene scene;
  const Endpoint c("softnic0");
  const QpPtr other = scene.b.make_qp(scene.b.send_cq, scene.b.recv_cq);
  connect_both(c.qp, other.get());
  BL_MUST_OK(post(other.get(), RecvWork{.wr_id = 100}));
  scene.send();
  scene.send();
  // The next completion causes no event, and the reset moves it below the tail at the time of
  // arming.
  arm(scene.b.recv_cq.get(), 1);
  BL_MUST_OK(post(c.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = 1}));
  must_complete(c.send_cq.get(), 1);
  REQUIRE(modify_state(scene.b.qp, IBV_QPS_RESET) == 0);
  // Makes it look as if it should cause an event and its process had died before it sent that.
  const ArenaView view(scene.fabric, other.get());
  view.recv_cq_of(other.get()).armed.store(softnic::kArmedForAny);
  scene.b.must_wake_for(scene.b.recv_cq);
  must_complete(scene.b.recv_cq.get(), 100);
}

TEST_CASE("channel: a failed creation leaves no pipe", "[softnic][channel]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const std::size_t before = pipes_in(fabric.fabric().dir());
  {
    const NoDescriptors none;
    errno = 0;
    CHECK(ibv_create_comp_channel(nic.context.get()) == nullptr);
    CHECK(errno == EMFILE);
  }
  CHECK(pipes_in(fabric.fabric().dir()) == before);
}
