// SPDX-License-Identifier: Apache-2.0
//
// Who was dialed and means ill: the connecting plane against a listener that the test plays.
#include "tests/component/connect_house.h"
#include "tests/support/wire_samples.h"

using namespace beeline;
using namespace beeline::test;

namespace {

struct Caller {
  explicit Caller(ControlOptions options = control_options()) : b(*table, std::move(options)) {}

  void start(FakeListener& fake) { BL_MUST(must(b.connect(fake.ticket())) == nullptr); }
  // A peer that behaves can still be reached.
  void reaches_a_real_peer() {
    Party a(*table);
    Comm2 comm = join(a, b);
    prove_write(*comm.receiver, *comm.sender);
    comm.receiver->link->send_goodbye(0);
    comm.sender->link->send_goodbye(0);
  }

  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  LogCapture log;
  Party b;
};

wire::Bytes welcome_of(const FakeListener& fake) {
  return wire::encode(
      wire::HelloAck{.version = 1, .process = fake.process(), .host = "faraway", .pid = 4711});
}

}  // namespace

TEST_CASE("hostile: an answer to HELLO cut at any byte, and a hang-up, is asked for again",
          "[component][connect]") {
  Caller caller;
  const std::size_t size = welcome_of(FakeListener()).size();
  for (std::size_t cut = 0; cut < size; ++cut) {
    FakeListener fake;
    caller.start(fake);
    {
      Stranger peer = fake.answer();
      peer.hear_message<wire::Hello>();
      peer.say(first_bytes(welcome_of(fake), cut));
    }
    Stranger peer = fake.welcome();
    peer.say(wire::encode(accept_for(peer.hear_message<wire::Connect>())));
    const Made made = caller.b.wait_connect(fake.ticket());
    made->link->send_goodbye(0);
  }
  CHECK(caller.log.count(LogLevel::kWarn) == 0);
  caller.reaches_a_real_peer();
}

TEST_CASE("hostile: an answer to HELLO cut anywhere, and silence, ends at the deadline",
          "[component][connect]") {
  ControlOptions options = control_options();
  options.half_open_timeout = std::chrono::milliseconds(100);
  options.connect_timeout = std::chrono::milliseconds(400);
  Caller caller(options);
  const std::size_t cut = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{9}, std::size_t{30});
  FakeListener fake;
  caller.start(fake);
  Stranger peer = fake.answer();
  peer.hear_message<wire::Hello>();
  peer.say(first_bytes(welcome_of(fake), cut));
  CHECK(caller.b.wait_connect_error(fake.ticket()).code == Errc::kTimeout);
  CHECK(caller.log.count("failed") == 1);
}

TEST_CASE("hostile: an answer to HELLO that is none fails the connect with one line",
          "[component][connect]") {
  Caller caller;
  FakeListener fake;
  caller.start(fake);
  Stranger peer = fake.answer();
  const wire::Frame hello = peer.hear();
  SECTION("our own HELLO") { peer.say(wire::make_frame(hello.type, hello.body)); }
  SECTION("another message") { peer.say(wire::encode(sample<wire::Goodbye>())); }
  SECTION("no message") { peer.say("HTTP/1.1 400 Bad Request\r\n\r\n"); }
  SECTION("a version that was not offered") {
    peer.say(wire::encode(
        wire::HelloAck{.version = 2, .process = fake.process(), .host = "faraway", .pid = 1}));
  }
  SECTION("a HELLO_ACK that is too long") {
    wire::Bytes body(100, std::byte{1});
    peer.say(wire::make_frame(wire::MessageType::kHelloAck, body));
  }
  SECTION("a REFUSE for no known reason") {
    wire::Bytes refuse = wire::encode(wire::Refuse{});
    refuse[wire::kFrameHeadBytes + 12] = std::byte{77};
    peer.say(refuse);
  }
  CHECK(caller.b.wait_connect_error(fake.ticket()).code == Errc::kProtocol);
  CHECK(caller.log.count(LogLevel::kWarn) == 1);
  peer.must_be_dropped();
  caller.reaches_a_real_peer();
}

TEST_CASE("hostile: ACCEPT twice makes one connection", "[component][connect]") {
  Caller caller;
  FakeListener fake;
  caller.start(fake);
  Stranger peer = fake.welcome();
  const wire::Bytes accept = wire::encode(accept_for(peer.hear_message<wire::Connect>()));
  peer.say(accept);
  peer.say(accept);
  const Made made = caller.b.wait_connect(fake.ticket());
  CHECK(peer.hear_message<wire::Ready>().comm == 7);
  CHECK(peer.hear_message<wire::Reject>().comm == 7);
  CHECK(made->link->state() == Link::State::kOpen);
  made->link->send_goodbye(0);
  caller.reaches_a_real_peer();
}

TEST_CASE("hostile: nobody answers for another", "[component][connect]") {
  Caller caller;
  FakeListener fake;
  FakeListener meddler;
  caller.start(fake);
  caller.start(meddler);
  Stranger peer = fake.welcome();
  Stranger other = meddler.welcome();
  const auto connect = peer.hear_message<wire::Connect>();
  const auto others_connect = other.hear_message<wire::Connect>();
  other.say(wire::encode(
      wire::Reject{.comm = connect.comm, .code = wire::RejectCode::kFailed, .text = "no"}));
  wire::Accept accept = accept_for(connect);
  accept.our_comm = 99;
  other.say(wire::encode(accept));
  CHECK(other.hear_message<wire::Reject>().comm == 99);
  peer.say(wire::encode(accept_for(connect)));
  const Made made = caller.b.wait_connect(fake.ticket());
  CHECK(peer.hear_message<wire::Ready>().comm == 7);
  other.say(wire::encode(wire::Goodbye{.comm = connect.comm, .settled = 3}));
  other.sync();
  CHECK(made->link->state() == Link::State::kOpen);
  other.say(wire::encode(accept_for(others_connect)));
  const Made others = caller.b.wait_connect(meddler.ticket());
  made->link->send_goodbye(0);
  others->link->send_goodbye(0);
}
