// SPDX-License-Identifier: Apache-2.0
//
// Jitter: messages of one connection stay in order, those of two connections may overtake each
// other.
#include "tests/beds/softnic/fault_data.h"

using namespace beeline::test;

namespace {

constexpr std::uint64_t kJitterMessages = 40;  // of each connection
constexpr std::size_t kJitterSize = 512;

// Two connections between the same ports, with one completion queue.
struct TwoLanes {
  TwoLanes()
      : more_a(make_qp(pair.a)),
        more_b(make_qp(pair.b)),
        from(pair.a.buffer(2 * kJitterMessages * kJitterSize)),
        into(pair.b.buffer(2 * kJitterMessages * kJitterSize)) {
    connect_both(more_a.get(), more_b.get());
    from.fill(1);
    pair.fabric.command("h0/softnic0", "jitter=5ms");
  }

  // Even messages use one connection, odd ones the other.
  void post_all() {
    for (std::uint64_t i = 0; i < 2 * kJitterMessages; ++i) {
      BL_MUST_OK(post(i % 2 == 0 ? pair.a.qp : more_a.get(),
                      write_work(from.part(i * kJitterSize, kJitterSize),
                                 into.part(i * kJitterSize, kJitterSize), i)));
    }
  }
  bool has_arrived(std::uint64_t i) {
    return has_pattern(into.bytes(i * kJitterSize, kJitterSize), 1, i * kJitterSize);
  }
  ibv_wc next() { return poll_one(pair.a.send_cq.get()); }

  Pair pair;
  QpPtr more_a;
  QpPtr more_b;
  Buffer from;
  Buffer into;
};

// Assumes that completions come in the order of the messages.
bool naive_counts_completions(TwoLanes& lanes) {
  lanes.post_all();
  bool right = true;
  for (std::uint64_t i = 0; i < 2 * kJitterMessages; ++i) {
    const ibv_wc wc = lanes.next();
    BL_MUST(wc.status == IBV_WC_SUCCESS);
    right = right && wc.wr_id == i;  // the test checks what this program does not
  }
  return right;
}

// Uses the wr_id of each completion.
bool careful_reads_wr_id(TwoLanes& lanes) {
  lanes.post_all();
  bool right = true;
  for (std::uint64_t i = 0; i < 2 * kJitterMessages; ++i) {
    const ibv_wc wc = lanes.next();
    right = right && wc.status == IBV_WC_SUCCESS && lanes.has_arrived(wc.wr_id);
  }
  return right;
}

}  // namespace

TEST_CASE("jitter: completions of two connections come in any order", "[softnic][jitter]") {
  TwoLanes naive;
  CHECK_FALSE(naive_counts_completions(naive));
  TwoLanes careful;
  CHECK(careful_reads_wr_id(careful));
  CHECK(careful.into.has(1));
}

TEST_CASE("jitter: messages of one connection stay in order", "[softnic][jitter]") {
  TwoLanes lanes;
  lanes.post_all();
  std::uint64_t expected[2] = {0, 1};
  for (std::uint64_t i = 0; i < 2 * kJitterMessages; ++i) {
    const ibv_wc wc = lanes.next();
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.wr_id == expected[wc.wr_id % 2]);
    expected[wc.wr_id % 2] += 2;
  }
}

TEST_CASE("jitter: the jitters of both ports add up and limit the delay", "[softnic][jitter]") {
  using Ms = std::chrono::duration<double, std::milli>;
  Pair pair;
  pair.fabric.command("h0/softnic0", "jitter=20ms");
  pair.fabric.command("h0/softnic1", "jitter=20ms");
  double longest = 0;
  double shortest = 1e9;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto start = Clock::now();
    REQUIRE(post(pair.a.qp, nothing_work(i)) == 0);
    must_complete(pair.a.send_cq.get(), i);
    const double took = Ms(Clock::now() - start).count();
    longest = std::max(longest, took);
    shortest = std::min(shortest, took);
  }
  CHECK(longest > 20);  // not possible with the jitter of one port
  CHECK(shortest < 20);
}
