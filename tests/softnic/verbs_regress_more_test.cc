// SPDX-License-Identifier: Apache-2.0
//
// Mistakes that were once made with shared receive queues, channels, hidden writes and removed
// devices. What a process that died half-way leaves behind is written into the arena here, since no
// signal hits a place between two instructions for sure.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "softnic/fabric/arena.h"
#include "softnic/fabric/mapping.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;

namespace {

constexpr Wire kQuick{.timeout = 14, .retry_cnt = 1, .min_rnr_timer = 1};

// The arena of the process that made `qp`, as its peers have it.
class ArenaView {
 public:
  ArenaView(const TestFabric& fabric, const ibv_qp* qp) {
    const std::string path =
        fabric.fabric().dir() + "/arena." + std::to_string(softnic::qpn_slot(qp->qp_num));
    const beeline::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    mapping_ = softnic::Mapping::of_file(file.get(), softnic::kArenaBytes);
    BL_MUST(mapping_);
    arena_ = softnic::Arena(mapping_.base());
  }
  const softnic::Arena& get() const { return arena_; }
  softnic::SrqRecord& srq_of(const ibv_qp* qp) const {
    return arena_.srq(arena_.qp(softnic::qpn_index(qp->qp_num)).srq);
  }
  softnic::CqRecord& recv_cq_of(const ibv_qp* qp) const {
    return arena_.cq(arena_.qp(softnic::qpn_index(qp->qp_num)).recv_cq);
  }

 private:
  softnic::Mapping mapping_;
  softnic::Arena arena_;
};

// Two receivers that share their receives; the second has a sender.
struct Sharing {
  explicit Sharing(uint32_t depth, const Wire& wire = kQuick)
      : a("softnic0"),
        b("softnic1"),
        srq(make_srq(b.pd.get(), depth)),
        first(make_qp_on(b, srq.get())),
        second(make_qp_on(b, srq.get())) {
    connect_both(a.qp, second.get(), wire);
  }
  void send(uint64_t wr_id) {
    BL_MUST_OK(post(a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = wr_id}));
    must_complete(a.send_cq.get(), wr_id);
  }

  TestFabric fabric;
  Endpoint a;
  Nic b;
  SrqPtr srq;
  QpPtr first;
  QpPtr second;
};

// No more descriptors can be had while it lives.
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

size_t pipes_in(const std::string& dir) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.is_fifo()) ++count;
  }
  return count;
}

// Armed queues of both directions, on one channel.
struct Armed {
  Armed() : channel(make_channel(b.context.get())), cq(make_cq(channel.get(), 64)) {
    ibv_qp_init_attr attr = init_attr(b);
    attr.recv_cq = cq.get();
    one.reset(ibv_create_qp(b.pd.get(), &attr));
    other.reset(ibv_create_qp(b.pd.get(), &attr));
    BL_MUST(one != nullptr && other != nullptr);
    connect_both(a.qp, one.get());
    connect_both(c.qp, other.get());
    for (uint64_t i = 0; i < 4; ++i) {
      BL_MUST_OK(post(one.get(), RecvWork{.wr_id = i}));
      BL_MUST_OK(post(other.get(), RecvWork{.wr_id = 10 + i}));
    }
  }
  static void send(Endpoint& from) {
    BL_MUST_OK(post(from.qp, SendWork{.opcode = IBV_WR_SEND}));
    must_complete(from.send_cq.get(), 0);
  }

  TestFabric fabric;
  Endpoint a{"softnic0"};
  Endpoint c{"softnic0"};
  Nic b{"softnic1"};
  ChannelPtr channel;
  CqPtr cq;
  QpPtr one;
  QpPtr other;
};

}  // namespace

TEST_CASE("regress_more: a taker that died half-way costs the shared queue no receive",
          "[softnic][regress_more]") {
  constexpr uint32_t kDepth = 2;
  Sharing scene(kDepth);
  for (uint64_t i = 0; i < kDepth; ++i) BL_MUST_OK(post(scene.srq.get(), RecvWork{.wr_id = i}));
  // Somebody took the first receive for the first queue pair, and did not get to moving on.
  const ArenaView view(scene.fabric, scene.first.get());
  softnic::SrqRecord& srq = view.srq_of(scene.first.get());
  view.get().slot(srq, view.get().fifo(srq, 0).load()).holder.store(scene.first->qp_num);
  REQUIRE(modify_state(scene.first.get(), IBV_QPS_RESET) == 0);
  BL_MUST_OK(post(scene.srq.get(), RecvWork{.wr_id = kDepth}));
  for (uint64_t i = 0; i < 20; ++i) {
    INFO("message " << i);
    scene.send(i);
    CHECK(poll_one(scene.b.recv_cq.get()).status == IBV_WC_SUCCESS);
    BL_MUST_OK(post(scene.srq.get(), RecvWork{.wr_id = 10 + i}));
  }
  use_up(scene.b, scene.srq.get(), 100);
}

TEST_CASE("regress_more: a limit is told by whoever finds the shared queue empty",
          "[softnic][regress_more]") {
  Sharing scene(4);
  // As if the one who took the last receive had died before it told.
  REQUIRE(arm_limit(scene.srq.get(), 2) == 0);
  REQUIRE(post(scene.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = 1}) == 0);
  CHECK(wait_for_event(scene.b.context.get(), IBV_EVENT_SRQ_LIMIT_REACHED).element.srq ==
        scene.srq.get());
  BL_MUST_OK(post(scene.srq.get(), RecvWork{.wr_id = 1}));
  must_complete(scene.a.send_cq.get(), 1);
}

TEST_CASE("regress_more: the memory of shared receives is of the queue's own domain",
          "[softnic][regress_more]") {
  Sharing scene(4);
  const PdPtr other(ibv_alloc_pd(scene.b.context.get()));
  const SrqPtr srq = make_srq(other.get(), 4);
  const QpPtr qp = make_qp_on(scene.b, srq.get());
  connect_both(scene.a.qp, qp.get(), kQuick);
  Buffer from = scene.a.buffer(64);
  Buffer ours(other.get(), 64);
  Buffer theirs(scene.b.pd.get(), 64);
  from.fill(1);
  SECTION("is written") {
    BL_MUST_OK(post(srq.get(), recv_work(ours.all(), 1)));
    BL_MUST_OK(post(scene.a.qp, send_work(from.all(), 1)));
    must_complete(scene.b.recv_cq.get(), 1);
    CHECK(ours.has(1));
  }
  SECTION("of the queue pair's is refused") {
    BL_MUST_OK(post(srq.get(), recv_work(theirs.all(), 1)));
    BL_MUST_OK(post(scene.a.qp, send_work(from.all(), 1)));
    CHECK(poll_one(scene.b.recv_cq.get()).status == IBV_WC_LOC_PROT_ERR);
    CHECK(theirs.is_zero(0, 64));
  }
}

TEST_CASE("regress_more: a forked child that posts to a shared queue is told no",
          "[softnic][regress_more]") {
  if (!kProcessesWork) return;
  const Sharing scene(4);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(post(scene.srq.get(), RecvWork{}) != 0 ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(status == 0);
}

TEST_CASE("regress_more: a sleeper wakes though its event could not be sent at once",
          "[softnic][regress_more]") {
  Armed scene;
  Armed::send(scene.a);  // everybody has opened what they need
  poll_one(scene.cq.get());
  BL_MUST_OK(ibv_req_notify_cq(scene.cq.get(), 0));
  {
    const NoDescriptors none;
    Armed::send(scene.a);
  }
  BL_MUST(next_cq_event(scene.channel.get()) == scene.cq.get());
  ibv_ack_cq_events(scene.cq.get(), 1);
}

TEST_CASE("regress_more: a reset of one queue pair hides no news of another from a sleeper",
          "[softnic][regress_more]") {
  Armed scene;
  Armed::send(scene.a);
  Armed::send(scene.a);
  // The next completion wakes nobody, and its place moves below what was there at the arming.
  BL_MUST_OK(ibv_req_notify_cq(scene.cq.get(), 1));
  Armed::send(scene.c);
  REQUIRE(modify_state(scene.one.get(), IBV_QPS_RESET) == 0);
  // As if it should have, and whoever pushed it had died before it told.
  const ArenaView view(scene.fabric, scene.other.get());
  view.recv_cq_of(scene.other.get()).armed.store(softnic::kArmedForAny);
  BL_MUST(next_cq_event(scene.channel.get()) == scene.cq.get());
  ibv_ack_cq_events(scene.cq.get(), 1);
  must_complete(scene.cq.get(), 10);
}

TEST_CASE("regress_more: what a READ brought is not overwritten by an older write that was hidden",
          "[softnic][regress_more]") {
  constexpr size_t kBytes = 256;
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.hazards.hide = true;
  const TestFabric fabric(spec);
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp);
  const beeline::UniqueFd fd = make_memfd(kBytes);
  const softnic::Mapping memory = softnic::Mapping::of_file(fd.get(), kBytes);
  const MrPtr mr(ibv_reg_dmabuf_mr(b.pd.get(), 0, kBytes, 0, fd.get(), kAllAccess));
  REQUIRE(mr != nullptr);
  const Region exported{0, kBytes, mr->lkey, mr->rkey};
  const std::span<const uint8_t> seen(reinterpret_cast<const uint8_t*>(memory.base()), kBytes);
  Buffer older = a.buffer(kBytes);
  Buffer newer = a.buffer(kBytes);
  older.fill(1);
  newer.fill(2);
  REQUIRE(post(a.qp, write_work(older.all(), exported, 1)) == 0);
  must_complete(a.send_cq.get(), 1);
  REQUIRE_FALSE(has_pattern(seen, 1));
  REQUIRE(post(b.qp, read_work(exported, newer.all(), 2)) == 0);
  must_complete(b.send_cq.get(), 2);
  REQUIRE(post(a.qp, read_work(older.part(0, 1), exported.moved(0, 1), 3)) == 0);  // reveals
  must_complete(a.send_cq.get(), 3);
  CHECK(has_pattern(seen, 2));
}

TEST_CASE("regress_more: a removed device changes nothing that it was asked to",
          "[softnic][regress_more]") {
  Sharing scene(4);
  scene.fabric.command("h0/softnic1", "remove");
  ibv_srq_attr attr{};
  CHECK(ibv_resize_cq(scene.b.recv_cq.get(), 512) == EIO);
  CHECK(arm_limit(scene.srq.get(), 1) == EIO);
  CHECK(ibv_query_srq(scene.srq.get(), &attr) == EIO);
}

TEST_CASE("regress_more: a channel that cannot be made leaves no pipe", "[softnic][regress_more]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const size_t before = pipes_in(fabric.fabric().dir());
  {
    const NoDescriptors none;
    errno = 0;
    CHECK(ibv_create_comp_channel(nic.context.get()) == nullptr);
    CHECK(errno == EMFILE);
  }
  CHECK(pipes_in(fabric.fabric().dir()) == before);
}

TEST_CASE("regress_more: a device that is closed serves nobody, even if it refuses to break",
          "[softnic][regress_more]") {
  const TestFabric fabric(0.01);
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  connect_both(a.qp, b.qp, kQuick);
  Buffer to = b.buffer(8);
  Buffer from = a.buffer(8);
  from.fill(1);
  fabric.command("h0/softnic1", "refuse-err=on");
  REQUIRE(ibv_close_device(b.context.get()) == 0);  // what was made in it is still there
  REQUIRE(post(a.qp, write_work(from.all(), to.all(), 1)) == 0);
  CHECK(poll_one(a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  CHECK(to.is_zero(0, 8));
}

TEST_CASE("regress_more: of a removal that nobody told of, the next one tells",
          "[softnic][regress_more]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  // Removed and put back by processes that died on the way.
  fabric.fabric().header().devices[0].removals.store(2);
  fabric.command("h0/softnic0", "remove");
  CHECK(next_event(context.get()).event_type == IBV_EVENT_DEVICE_FATAL);
  fabric.command("h0/softnic0", "return");
  fabric.command("h0/softnic0", "remove");
  REQUIRE(::fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_async_event event{};
  CHECK(ibv_get_async_event(context.get(), &event) != 0);  // it was told already
}
