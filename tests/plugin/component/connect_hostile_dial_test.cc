// SPDX-License-Identifier: Apache-2.0
//
// A connecting plane whose peer breaks the protocol. The test plays the listener.
#include "tests/plugin/component/connect_listener_rig.h"
#include "tests/support/wire_samples.h"

using namespace beeline;
using namespace beeline::test;

namespace {

struct DialingRig {
  explicit DialingRig(ControlOptions options = control_options()) : b(*table, std::move(options)) {}

  void start(FakeListener& fake) { BL_MUST(must(b.connect(fake.ticket())) == nullptr); }
  // A real peer can still be reached.
  void must_reach_real_peer() {
    Party a(*table);
    CommPair comm = join(a, b);
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
  DialingRig rig;
  const std::size_t size = welcome_of(FakeListener()).size();
  for (std::size_t cut = 0; cut < size; ++cut) {
    FakeListener fake;
    rig.start(fake);
    {
      RawPeer peer = fake.answer();
      peer.receive_message<wire::Hello>();
      peer.send(first_bytes(welcome_of(fake), cut));
    }
    RawPeer peer = fake.welcome();
    peer.send(wire::encode(accept_for(peer.receive_message<wire::Connect>())));
    const ConnectionPtr made = rig.b.wait_connect(fake.ticket());
    made->link->send_goodbye(0);
  }
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
  rig.must_reach_real_peer();
}

TEST_CASE("hostile: an invalid answer to HELLO fails the connect with one line",
          "[component][connect]") {
  DialingRig rig;
  FakeListener fake;
  rig.start(fake);
  RawPeer peer = fake.answer();
  const wire::Frame hello = peer.receive_frame();
  SECTION("our own HELLO") { peer.send(wire::make_frame(hello.type, hello.body)); }
  SECTION("another message") { peer.send(wire::encode(sample<wire::Goodbye>())); }
  SECTION("no message") { peer.send("HTTP/1.1 400 Bad Request\r\n\r\n"); }
  SECTION("a version that was not offered") {
    peer.send(wire::encode(wire::HelloAck{.version = wire::kOurVersions.most + 1,
                                          .process = fake.process(),
                                          .host = "faraway",
                                          .pid = 1}));
  }
  SECTION("a HELLO_ACK that is too long") {
    wire::Bytes body(100, std::byte{1});
    peer.send(wire::make_frame(wire::MessageType::kHelloAck, body));
  }
  SECTION("a REFUSE for no known reason") {
    wire::Bytes refuse = wire::encode(wire::Refuse{});
    refuse[wire::kFrameHeadBytes + 12] = std::byte{77};
    peer.send(refuse);
  }
  CHECK(rig.b.wait_connect_error(fake.ticket()).code == Errc::kProtocol);
  CHECK(rig.log.count(LogLevel::kWarn) == 1);
  peer.must_be_dropped();
  rig.must_reach_real_peer();
}

TEST_CASE("hostile: ACCEPT twice makes one connection", "[component][connect]") {
  DialingRig rig;
  FakeListener fake;
  rig.start(fake);
  RawPeer peer = fake.welcome();
  const wire::Bytes accept = wire::encode(accept_for(peer.receive_message<wire::Connect>()));
  peer.send(accept);
  peer.send(accept);
  const ConnectionPtr made = rig.b.wait_connect(fake.ticket());
  CHECK(peer.receive_message<wire::Ready>().comm == 7);
  CHECK(peer.receive_message<wire::Reject>().comm == 7);
  CHECK(made->link->state() == Link::State::kOpen);
  made->link->send_goodbye(0);
  rig.must_reach_real_peer();
}

TEST_CASE("hostile: a peer cannot answer for another", "[component][connect]") {
  DialingRig rig;
  FakeListener fake;
  FakeListener meddler;
  rig.start(fake);
  rig.start(meddler);
  RawPeer peer = fake.welcome();
  RawPeer other = meddler.welcome();
  const auto connect = peer.receive_message<wire::Connect>();
  const auto others_connect = other.receive_message<wire::Connect>();
  other.send(wire::encode(
      wire::Reject{.comm = connect.comm, .code = wire::RejectCode::kFailed, .text = "no"}));
  wire::Accept accept = accept_for(connect);
  accept.our_comm = 99;
  other.send(wire::encode(accept));
  CHECK(other.receive_message<wire::Reject>().comm == 99);
  peer.send(wire::encode(accept_for(connect)));
  const ConnectionPtr made = rig.b.wait_connect(fake.ticket());
  CHECK(peer.receive_message<wire::Ready>().comm == 7);
  other.send(wire::encode(wire::Goodbye{.comm = connect.comm, .settled = 3}));
  other.sync();
  CHECK(made->link->state() == Link::State::kOpen);
  other.send(wire::encode(accept_for(others_connect)));
  const ConnectionPtr others = rig.b.wait_connect(meddler.ticket());
  made->link->send_goodbye(0);
  others->link->send_goodbye(0);
}
