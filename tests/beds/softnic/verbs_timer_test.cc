// SPDX-License-Identifier: Apache-2.0
//
// Timeouts and RNR retries, on a fabric with a clock_scale of 0.01. The lower limits are those of
// the specification; the upper limits allow for a slow machine.
#include <functional>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kScale = 0.01;
constexpr double kSlack = 20;  // times the nominal duration

struct Timed {
  ibv_wc_status status;
  double seconds;
};

// From the post to the completion.
Timed time_post(Endpoint& end, const SendWork& work) {
  const auto start = Clock::now();
  BL_MUST_OK(post(end.qp, work));
  const ibv_wc wc = poll_one(end.send_cq.get());
  return {wc.status, Seconds(Clock::now() - start).count()};
}

double retry_seconds(const Wire& wire) {
  return (wire.retry_cnt + 1) * 4.096e-6 * static_cast<double>(1u << wire.timeout) * kScale;
}

// 0.13 s of scaled time.
const Wire kImpatient{.timeout = 20, .retry_cnt = 2};

struct Silence {
  const char* cause;
  std::function<void(Pair&)> arrange;
};

void reconnect_b(Pair& pair, const QpAddress& to) { connect(pair.b.qp, to); }

const std::vector<Silence>& silences() {
  static const std::vector<Silence> causes = {
      {"the peer is destroyed", [](Pair& pair) { pair.b.owned_qp.reset(); }},
      {"the peer is in RESET",
       [](Pair& pair) { BL_MUST_OK(modify_state(pair.b.qp, IBV_QPS_RESET)); }},
      {"the peer is in INIT",
       [](Pair& pair) {
         BL_MUST_OK(modify_state(pair.b.qp, IBV_QPS_RESET));
         to_init(pair.b.qp);
       }},
      {"the peer is in ERR", [](Pair& pair) { BL_MUST_OK(modify_state(pair.b.qp, IBV_QPS_ERR)); }},
      {"the peer expects other sequence numbers",
       [](Pair& pair) {
         QpAddress other = address_of(pair.a.qp);
         other.psn = (other.psn - 1000) & 0xFFFFFF;  // a number in the future, not a repetition
         reconnect_b(pair, other);
       }},
      {"the peer is connected to somebody else",
       [](Pair& pair) {
         QpAddress other = address_of(pair.a.qp);
         other.qp_num = pair.b.qp->qp_num;
         reconnect_b(pair, other);
       }},
      {"there is no such queue pair",
       [](Pair& pair) {
         QpAddress nobody = address_of(pair.b.qp);
         nobody.qp_num ^= 1u << 12;
         connect(pair.a.qp, nobody, kImpatient);
       }},
      {"there is no such port",
       [](Pair& pair) {
         QpAddress nobody = address_of(pair.b.qp);
         nobody.gid.raw[15] ^= 0x80;
         connect(pair.a.qp, nobody, kImpatient);
       }},
      {"the cable of the peer is out",
       [](Pair& pair) { pair.fabric.command("h0/softnic1", "down"); }},
      {"the own cable is out", [](Pair& pair) { pair.fabric.command("h0/softnic0", "down"); }},
  };
  return causes;
}

}  // namespace

TEST_CASE("timer: a missing answer of any kind ends in RETRY_EXC in time", "[softnic][timer]") {
  for (const Silence& silence : silences()) {
    INFO(silence.cause);
    Pair pair({.clock_scale = kScale, .wire = kImpatient});
    Buffer from = pair.a.buffer(64);
    Buffer into = pair.b.buffer(64);
    from.fill(1);
    silence.arrange(pair);
    const Timed timed = time_post(pair.a, write_work(from.all(), into.all()));
    CHECK(timed.status == IBV_WC_RETRY_EXC_ERR);
    CHECK(timed.seconds >= retry_seconds(kImpatient));
    CHECK(timed.seconds <= retry_seconds(kImpatient) * kSlack);
    CHECK(state_of(pair.a.qp) == IBV_QPS_ERR);
    CHECK(into.is_zero(0, 64));
  }
}

TEST_CASE("timer: the time to RETRY_EXC follows timeout and retry count", "[softnic][timer]") {
  struct Setting {
    std::uint8_t timeout;
    std::uint8_t retries;
  };
  const Setting setting = GENERATE(values<Setting>({{20, 0}, {18, 7}, {21, 0}, {20, 3}}));
  const Wire wire{.timeout = setting.timeout, .retry_cnt = setting.retries};
  INFO("timeout " << int{setting.timeout} << ", retries " << int{setting.retries});
  Pair pair({.clock_scale = kScale, .wire = wire});
  BL_MUST_OK(modify_state(pair.b.qp, IBV_QPS_RESET));
  const auto opcode = GENERATE(IBV_WR_SEND, IBV_WR_RDMA_READ);
  const Timed timed = time_post(pair.a, {.opcode = opcode});
  CHECK(timed.status == IBV_WC_RETRY_EXC_ERR);
  CHECK(timed.seconds >= retry_seconds(wire));
  CHECK(timed.seconds <= retry_seconds(wire) * kSlack);
}

TEST_CASE("timer: a peer that appears within the retry time is reached", "[softnic][timer]") {
  Pair pair({.clock_scale = kScale, .wire = {.timeout = 24}});
  Buffer from = pair.a.buffer(64);
  Buffer into = pair.b.buffer(64);
  from.fill(1);
  const QpAddress a_address = address_of(pair.a.qp);
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), 1)) == 0);
  // When a later request with a shorter timeout has failed, the first has had no answer either.
  Endpoint watch("softnic0");
  connect(watch.qp, address_of(pair.b.qp), {.timeout = 16, .retry_cnt = 0});
  REQUIRE(time_post(watch, nothing_work()).status == IBV_WC_RETRY_EXC_ERR);
  connect(pair.b.qp, a_address);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(into.has(1));
}

TEST_CASE("timer: each message has the whole retry budget", "[softnic][timer]") {
  Pair pair({.clock_scale = 0.1, .wire = {.timeout = 20, .retry_cnt = 2}});  // 0.43 s a try
  for (std::uint64_t i = 0; i < 3; ++i) {
    pair.fabric.command("h0/softnic1", "down");
    REQUIRE(post(pair.a.qp, nothing_work(i)) == 0);
    Endpoint watch("softnic0");
    connect(watch.qp, address_of(pair.b.qp), {.timeout = 10, .retry_cnt = 0});
    REQUIRE(time_post(watch, nothing_work()).status == IBV_WC_RETRY_EXC_ERR);
    pair.fabric.command("h0/softnic1", "up");
    must_complete(pair.a.send_cq.get(), i);  // with its second attempt
  }
}

TEST_CASE("timer: each message has the whole RNR budget", "[softnic][timer]") {
  Pair pair({.clock_scale = 0.5, .wire = {.rnr_retry = 2, .min_rnr_timer = 0}});  // 0.33 s a try
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE(post(pair.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
    REQUIRE(post(pair.b.qp, RecvWork{.wr_id = i}) == 0);
    must_complete(pair.a.send_cq.get(), i);
    must_complete(pair.b.recv_cq.get(), i);
  }
}

TEST_CASE("timer: RNR retries run out after their time", "[softnic][timer]") {
  struct Setting {
    std::uint8_t code;
    double ms;  // the time that the code means
    std::uint8_t retries;
  };
  const Setting setting = GENERATE(values<Setting>(
      {{0, 655.36, 1}, {0, 655.36, 3}, {24, 40.96, 6}, {28, 163.84, 3}, {31, 491.52, 2}}));
  INFO("code " << int{setting.code} << ", retries " << int{setting.retries});
  constexpr double kRnrScale = 0.1;
  Pair pair({.clock_scale = kRnrScale,
             .wire = {.rnr_retry = setting.retries, .min_rnr_timer = setting.code}});
  const Timed timed = time_post(pair.a, {.opcode = IBV_WR_SEND});
  CHECK(timed.status == IBV_WC_RNR_RETRY_EXC_ERR);
  const double nominal = setting.ms * 1e-3 * setting.retries * kRnrScale;
  CHECK(timed.seconds >= nominal);
  CHECK(timed.seconds <= nominal * kSlack);
}

TEST_CASE("timer: RNR retry 7 waits until a receive comes", "[softnic][timer]") {
  Pair pair({.clock_scale = kScale, .wire = {.rnr_retry = 7, .min_rnr_timer = 20}});
  Buffer from = pair.a.buffer(5000);
  Buffer into = pair.b.buffer(5000);
  from.fill(1);
  REQUIRE(post(pair.a.qp, send_work(from.all(), 1)) == 0);
  REQUIRE(post(pair.a.qp, send_work(from.part(0, 10), 2)) == 0);
  // Longer than seven RNR retries, and than the ACK timeout with all retries, because an RNR NAK is
  // an answer.
  Endpoint watch("softnic0");
  connect(watch.qp, address_of(watch.qp), {.rnr_retry = 6, .min_rnr_timer = 0});
  REQUIRE(time_post(watch, {.opcode = IBV_WR_SEND}).status == IBV_WC_RNR_RETRY_EXC_ERR);
  Endpoint silent("softnic0");
  to_init(silent.qp);
  connect(watch.qp, address_of(silent.qp));
  REQUIRE(time_post(watch, nothing_work()).status == IBV_WC_RETRY_EXC_ERR);
  CHECK(is_empty(pair.a.send_cq.get()));

  REQUIRE(post(pair.b.qp, recv_work(into.all(), 10)) == 0);
  REQUIRE(post(pair.b.qp, recv_work(into.all(), 11)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  must_complete(pair.a.send_cq.get(), 2);
  const ibv_wc wc = poll_one(pair.b.recv_cq.get());
  CHECK(wc.wr_id == 10);
  CHECK(wc.byte_len == 5000);
  CHECK(into.has(1));
}

TEST_CASE("timer: work behind one that waits keeps waiting", "[softnic][timer]") {
  Pair pair({.clock_scale = kScale});
  Buffer from = pair.a.buffer(64);
  Buffer into = pair.b.buffer(64);
  from.fill(1);
  REQUIRE(post(pair.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = 1}) == 0);  // no receive yet
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), 2)) == 0);
  Endpoint watch("softnic0");
  connect(watch.qp, address_of(watch.qp), {.rnr_retry = 1, .min_rnr_timer = 0});
  REQUIRE(time_post(watch, {.opcode = IBV_WR_SEND}).status == IBV_WC_RNR_RETRY_EXC_ERR);
  CHECK(into.is_zero(0, 64));
  REQUIRE(post(pair.b.qp, RecvWork{.wr_id = 3}) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  must_complete(pair.a.send_cq.get(), 2);
  CHECK(into.has(1));
}
