// SPDX-License-Identifier: Apache-2.0
//
// Ports that lose messages and answers. Retries repair that, and nothing arrives twice.
#include <algorithm>
#include <cstring>

#include "tests/beds/softnic/fault_data.h"

using namespace beeline::test;

namespace {

constexpr std::uint64_t kLossMessages = 200;
constexpr std::size_t kLossSize = 1024;
constexpr std::uint8_t kUsed = 0xEE;
constexpr std::uint64_t kSpare = 5;  // receives that no message may consume

softnic::FabricSpec seeded(std::uint64_t seed) {
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.clock_scale = kFastClock;
  spec.seed = seed;
  return spec;
}

// A sequence of numbered messages from a to b, each with its own place in memory.
struct Stream {
  explicit Stream(std::uint8_t retry_cnt, std::uint64_t seed = 1)
      : fabric(seeded(seed)),
        a("softnic0", {.cqe = 512}),
        b("softnic1", {.recv_depth = kLossMessages + kSpare, .cqe = 512}),
        from(a.buffer(kLossMessages * kLossSize)),
        into(b.buffer(kLossMessages * kLossSize)) {
    connect_both(a.qp, b.qp, {.timeout = 14, .retry_cnt = retry_cnt});
    from.fill(1);
  }

  Region source(std::uint64_t i) { return from.part(i * kLossSize, kLossSize); }
  Region target(std::uint64_t i) { return into.part(i * kLossSize, kLossSize); }
  bool has_arrived(std::uint64_t i) {
    return has_pattern(into.bytes(i * kLossSize, kLossSize), 1, i * kLossSize);
  }

  TestFabric fabric;
  Endpoint a;
  Endpoint b;
  Buffer from;
  Buffer into;
};

// Sends them one after the other and returns how many succeeded.
std::uint64_t write_all(Stream& stream) {
  for (std::uint64_t i = 0; i < kLossMessages; ++i) {
    BL_MUST_OK(post(stream.a.qp, write_work(stream.source(i), stream.target(i), i)));
    if (poll_one(stream.a.send_cq.get()).status != IBV_WC_SUCCESS) return i;
  }
  return kLossMessages;
}

bool naive_asks_for_no_retries() {
  Stream stream(0);
  stream.fabric.command("h0/softnic0", "loss=10%");
  return write_all(stream) == kLossMessages;
}

bool careful_asks_for_retries() {
  Stream stream(7);
  stream.fabric.command("h0/softnic0", "loss=10%");
  return write_all(stream) == kLossMessages && stream.into.has(1);
}

// The receiver checks each message at its completion and reuses the memory at once.
struct Receiver {
  explicit Receiver(Stream& the_stream) : stream(the_stream) {}

  void look() {
    ibv_wc wc{};
    if (ibv_poll_cq(stream.b.recv_cq.get(), 1, &wc) != 1) return;
    BL_MUST(wc.status == IBV_WC_SUCCESS);
    BL_MUST(received < kLossMessages);
    in_order = in_order && wc.wr_id == received;
    right = right && stream.has_arrived(received);
    std::memset(stream.into.data() + received * kLossSize, kUsed, kLossSize);
    ++received;
  }
  bool is_memory_unchanged() const {
    const auto all = stream.into.bytes();
    return std::all_of(all.begin(), all.end(), [](std::uint8_t byte) { return byte == kUsed; });
  }

  Stream& stream;
  std::uint64_t received = 0;
  bool in_order = true;
  bool right = true;
};

SendWork numbered(Stream& stream, bool writes, std::uint64_t i) {
  return writes ? write_imm_work(stream.source(i), stream.target(i), 0, i)
                : send_work(stream.source(i), i);
}

std::uint64_t flushed_receives(Stream& stream) {
  BL_MUST_OK(modify_state(stream.b.qp, IBV_QPS_ERR));
  std::uint64_t flushed = 0;
  for (ibv_wc wc{}; ibv_poll_cq(stream.b.recv_cq.get(), 1, &wc) == 1; ++flushed) {
    BL_MUST(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
  return flushed;
}

}  // namespace

TEST_CASE("loss: without retries the first loss is a failure", "[softnic][loss]") {
  CHECK_FALSE(naive_asks_for_no_retries());
  CHECK(careful_asks_for_retries());
}

TEST_CASE("loss: a message that was received is not received again", "[softnic][loss]") {
  const bool writes = GENERATE(false, true);
  const bool shaped = GENERATE(false, true);
  const char* port = GENERATE("h0/softnic0", "h0/softnic1");
  INFO((writes ? "WRITE with immediate" : "SEND") << (shaped ? ", shaped, " : ", ") << port);
  Stream stream(7);
  for (std::uint64_t i = 0; i < kLossMessages + kSpare; ++i) {
    const RecvWork into =
        writes || i >= kLossMessages ? RecvWork{.wr_id = i} : recv_work(stream.target(i), i);
    BL_MUST_OK(post(stream.b.qp, into));
  }
  if (shaped) stream.fabric.command(port, "latency=10us");
  stream.fabric.command(port, "loss=20%");
  Receiver receiver(stream);
  std::uint64_t posted = 0;
  std::uint64_t sent = 0;
  wait_until(
      [&] {
        for (; posted < kLossMessages && posted - sent < 16; ++posted) {
          BL_MUST_OK(post(stream.a.qp, numbered(stream, writes, posted)));
        }
        ibv_wc wc{};
        if (ibv_poll_cq(stream.a.send_cq.get(), 1, &wc) == 1) {
          BL_MUST(wc.status == IBV_WC_SUCCESS);
          BL_MUST(wc.wr_id == sent++);
        }
        receiver.look();
        return sent == kLossMessages;
      },
      "the end of the stream");
  while (receiver.received < kLossMessages) receiver.look();
  CHECK(receiver.in_order);
  CHECK(receiver.right);
  CHECK(receiver.is_memory_unchanged());
  CHECK(flushed_receives(stream) == kSpare);
}

TEST_CASE("loss: a long message is complete, whatever parts of it were lost", "[softnic][loss]") {
  constexpr std::size_t kLong = 3 << 20;
  const bool shaped = GENERATE(false, true);
  const ibv_wr_opcode opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND);
  INFO("opcode " << opcode << (shaped ? ", shaped" : ""));
  Stream stream(7);
  Buffer ours = stream.a.buffer(kLong);
  Buffer theirs = stream.b.buffer(kLong);
  const bool reads = opcode == IBV_WR_RDMA_READ;
  if (shaped) stream.fabric.command("h0/softnic0", "rate=200M");
  stream.fabric.command("h0/softnic0", "loss=20%");
  for (std::uint32_t i = 0; i < 5; ++i) {
    (reads ? theirs : ours).fill(i);
    BL_MUST_OK(post(stream.b.qp, recv_work(theirs.all(), i)));
    SendWork work = write_work(ours.all(), theirs.all(), i);
    work.opcode = opcode;
    BL_MUST_OK(post(stream.a.qp, work));
    must_complete(stream.a.send_cq.get(), i);
    CHECK((reads ? ours : theirs).has(i));
  }
}

TEST_CASE("loss: an atomic operation is executed once, whatever was lost", "[softnic][loss]") {
  constexpr int kAtomic = kAllAccess | IBV_ACCESS_REMOTE_ATOMIC;
  Stream stream(7);
  connect_both(stream.a.qp, stream.b.qp, {.access = kAtomic, .timeout = 14});
  alignas(8) std::uint64_t counter = 0;
  alignas(8) std::uint64_t before = 0;
  const MrPtr there(ibv_reg_mr(stream.b.pd.get(), &counter, sizeof counter, kAtomic));
  const MrPtr here(ibv_reg_mr(stream.a.pd.get(), &before, sizeof before, kAllAccess));
  REQUIRE((there && here));
  stream.fabric.command("h0/softnic0", "loss=20%");
  ibv_sge sge{reinterpret_cast<std::uint64_t>(&before), sizeof before, here->lkey};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic.remote_addr = reinterpret_cast<std::uint64_t>(&counter);
  wr.wr.atomic.rkey = there->rkey;
  wr.wr.atomic.compare_add = 1;
  for (wr.wr_id = 0; wr.wr_id < kLossMessages; ++wr.wr_id) {
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(stream.a.qp, &wr, &bad) == 0);
    must_complete(stream.a.send_cq.get(), wr.wr_id);
    CHECK(before == wr.wr_id);
  }
  CHECK(counter == kLossMessages);
}

TEST_CASE("loss: a sender that fails cannot know whether its message arrived", "[softnic][loss]") {
  std::uint64_t arrived = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    Stream stream(0, seed);
    stream.fabric.command("h0/softnic0", "loss=10%");
    const std::uint64_t failed = write_all(stream);
    REQUIRE(failed < kLossMessages);
    ++(stream.has_arrived(failed) ? arrived : lost);
  }
  CHECK(arrived > 0);
  CHECK(lost > 0);
}

TEST_CASE("loss: the same seed loses the same messages", "[softnic][loss]") {
  const auto first_failure = [](std::uint64_t seed) {
    Stream stream(0, seed);
    stream.fabric.command("h0/softnic0", "loss=5%");
    return write_all(stream);
  };
  std::vector<std::uint64_t> failures;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    failures.push_back(first_failure(seed));
    CHECK(first_failure(seed) == failures.back());
  }
  CHECK(std::any_of(failures.begin(), failures.end(),
                    [&](std::uint64_t failure) { return failure != failures.front(); }));
}

TEST_CASE("loss: the losses of both ports add up", "[softnic][loss]") {
  constexpr std::uint32_t kTries = 400;
  struct Losses {
    const char* ours;
    const char* theirs;
    double one_way;
  };
  const Losses losses = GENERATE(values<Losses>({{"loss=20%", "loss=0", 0.20},
                                                 {"loss=0", "loss=20%", 0.20},
                                                 {"loss=20%", "loss=20%", 0.36},
                                                 {"loss=100%", "loss=1%", 1.00}}));
  INFO(losses.ours << " and " << losses.theirs);
  Stream stream(0);
  stream.fabric.command("h0/softnic0", losses.ours);
  stream.fabric.command("h0/softnic1", losses.theirs);
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < kTries; ++i) {
    connect_both(stream.a.qp, stream.b.qp, {.timeout = 14, .retry_cnt = 0});
    BL_MUST_OK(post(stream.a.qp, nothing_work(i)));
    lost += poll_one(stream.a.send_cq.get()).status == IBV_WC_SUCCESS ? 0 : 1;
  }
  // A message counts as lost if it or its answer was lost.
  const double both_ways = 1 - (1 - losses.one_way) * (1 - losses.one_way);
  CHECK(lost >= kTries * (both_ways - 0.1));
  CHECK(lost <= kTries * (both_ways + 0.1));
}

TEST_CASE("loss: a loss of 100% lets nothing through", "[softnic][loss]") {
  Stream stream(0);
  stream.fabric.command("h0/softnic0", "loss=100%");
  for (std::uint64_t i = 0; i < 20; ++i) {
    connect_both(stream.a.qp, stream.b.qp, {.timeout = 14, .retry_cnt = 0});
    BL_MUST_OK(post(stream.a.qp, write_work(stream.source(i), stream.target(i), i)));
    CHECK(poll_one(stream.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  }
  CHECK(stream.into.is_zero(0, stream.into.size()));
}

TEST_CASE("loss: a port that loses what it sends receives requests, and answers none",
          "[softnic][loss]") {
  const bool is_sender = GENERATE(true, false);
  Stream stream(1);
  stream.fabric.command(is_sender ? "h0/softnic0" : "h0/softnic1", "loss-sent=100%");
  CHECK(write_all(stream) == 0);
  CHECK(stream.has_arrived(0) == !is_sender);
}

TEST_CASE("loss: messages that are too long are lost, and shorter ones pass", "[softnic][loss]") {
  const bool passes = GENERATE(true, false);
  Stream stream(1);
  stream.fabric.command("h0/softnic1",
                        "loss-over=" + std::to_string(passes ? kLossSize : kLossSize - 1));
  CHECK(write_all(stream) == (passes ? kLossMessages : 0));
  CHECK(stream.has_arrived(0) == passes);
}
