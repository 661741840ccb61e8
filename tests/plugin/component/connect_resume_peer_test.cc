// SPDX-License-Identifier: Apache-2.0
//
// A control channel that is lost and dialed again, with a peer that the test plays: what is said,
// and what a peer that breaks the rules achieves.
#include "tests/plugin/component/connect_listener_rig.h"
#include "tests/plugin/component/connect_network.h"

using namespace beeline;
using namespace beeline::test;

namespace {

// A peer, played through a socket, that has a channel with the rig's listening process.
struct RawResumer {
  explicit RawResumer(ListenerRig& rig) : handle(handle_of(rig.ticket)), client(handle) {
    hello.resume = wire::ResumeOffer{.token = {9, 9, 9}, .addresses = {fake_address()}};
    client.send(wire::encode(hello));
    const auto ack = client.receive_message<wire::HelloAck>();
    BL_MUST(ack.resume.has_value());
    their_token = ack.resume->token;
  }

  // A listening socket at which nobody answers.
  wire::SocketAddress fake_address() { return handle_of(silent.ticket()).address; }

  wire::Resume resume(std::uint32_t attempt) const {
    return {.process = hello.process, .token = their_token, .attempt = attempt};
  }
  wire::Refuse must_refuse(const wire::Resume& resume) const {
    RawPeer dial(handle);
    dial.send(wire::encode(resume));
    auto refusal = dial.receive_message<wire::Refuse>();
    dial.must_be_dropped();
    return refusal;
  }

  wire::Handle handle;
  FakeListener silent;
  wire::Hello hello = hello_for(handle);
  RawPeer client;
  wire::Token their_token{};
};

// A listening peer that is played by the test, and a process that has a comm with it.
struct FakeResumable {
  // `first_byte` as for FakeListener.
  explicit FakeResumable(std::uint8_t first_byte = 0xff) : fake(first_byte) {
    BL_MUST(must(b.connect(fake.ticket())) == nullptr);
    RawPeer peer = fake.answer();
    hello = peer.receive_message<wire::Hello>();
    peer.send(wire::encode(wire::HelloAck{.version = wire::kOurVersions.most,
                                          .process = fake.process(),
                                          .host = "faraway",
                                          .pid = 4711,
                                          .resume = offer}));
    peer.send(wire::encode(accept_for(peer.receive_message<wire::Connect>())));
    made = b.wait_connect(fake.ticket());
    ready = peer.receive_message<wire::Ready>();
    peer.reset();
  }

  wire::ResumeAck good_ack() const {
    return {.process = fake.process(), .token = hello.resume->token, .attempt = 0};
  }
  void wait_for_death() const {
    wait_for([&] { return made->link->state() == Link::State::kDead; }, "the end of the link");
  }

  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  LogCapture log;
  FakeListener fake;
  wire::ResumeOffer offer{.token = {4, 5, 6}, .addresses = {handle_of(fake.ticket()).address}};
  Party b{*table, resuming_options()};
  wire::Hello hello;
  wire::Ready ready;
  ConnectionPtr made;
};

}  // namespace

// --- What is said ---

TEST_CASE("resume: without BEELINE_RECOVERY, nothing is offered and nothing more listens",
          "[component][connect]") {
  const bool is_on = GENERATE(false, true);
  const TestFabric fabric;
  const auto table = scan(fabric);
  wait_for_quiet();
  FakeListener fake;
  Party b(*table, is_on ? resuming_options() : control_options());
  BL_MUST(must(b.connect(fake.ticket())) == nullptr);
  RawPeer peer = fake.answer();
  const auto hello = peer.receive_message<wire::Hello>();
  CHECK(hello.resume.has_value() == is_on);
  CHECK(listening_sockets() == (is_on ? 2 : 1));  // with the fake one
}

TEST_CASE("resume: a process offers to resume only to a peer that offers it",
          "[component][connect]") {
  const bool is_on = GENERATE(false, true);
  const bool is_offered = GENERATE(false, true);
  ListenerRig rig(is_on ? resuming_options() : control_options());
  const wire::Handle handle = handle_of(rig.ticket);
  wire::Hello hello = hello_for(handle);
  if (is_offered) hello.resume = wire::ResumeOffer{.token = {1}, .addresses = {handle.address}};
  RawPeer peer(handle);
  peer.send(wire::encode(hello));
  const auto ack = peer.receive_message<wire::HelloAck>();
  CHECK(ack.resume.has_value() == (is_on && is_offered));
  if (ack.resume) CHECK(ack.resume->addresses == std::vector{handle.address});
  peer.send(wire::encode(wire::StillOpen{.comm = 1, .our_comm = 1}));
  if (ack.resume) {
    peer.receive_message<wire::Reject>();
  } else {
    peer.must_be_dropped();  // as after any message that does not exist
  }
}

TEST_CASE("resume: RESUME names the channel, and READY and STILL_OPEN follow",
          "[component][connect]") {
  FakeResumable rig;
  RawPeer peer = rig.fake.answer();
  const auto resume = peer.receive_message<wire::Resume>();
  CHECK(resume.process == rig.hello.process);
  CHECK(resume.token == rig.offer.token);
  CHECK(resume.attempt == 1);
  peer.send(wire::encode(rig.good_ack()));
  CHECK(peer.receive_message<wire::Ready>() == rig.ready);
  const auto question = peer.receive_message<wire::StillOpen>();
  CHECK(question.comm == rig.ready.comm);
  CHECK(rig.made->link->state() == Link::State::kOpen);
  peer.send(wire::encode(wire::Reject{
      .comm = question.our_comm, .code = wire::RejectCode::kAbandoned, .text = "a reason"}));
  rig.wait_for_death();
  CHECK(rig.made->link->cause() == "it says: a reason");
}

TEST_CASE("resume: of two dials, that of the smaller process has precedence",
          "[component][connect]") {
  const bool is_smaller = GENERATE(false, true);  // the peer
  FakeResumable rig(is_smaller ? 0 : 0xff);
  RawPeer answered = rig.fake.answer();
  answered.receive_message<wire::Resume>();
  wire::Handle place = handle_of(rig.fake.ticket());
  place.address = rig.hello.resume->addresses.front();
  RawPeer dialed(place);
  dialed.send(wire::encode(
      wire::Resume{.process = rig.fake.process(), .token = rig.hello.resume->token, .attempt = 1}));
  if (is_smaller) {
    CHECK(dialed.receive_message<wire::ResumeAck>().token == rig.offer.token);
    answered.must_be_dropped();
    CHECK(dialed.receive_message<wire::Ready>() == rig.ready);
  } else {
    CHECK(dialed.receive_message<wire::Refuse>().code == wire::RefuseCode::kDuplicate);
    answered.send(wire::encode(rig.good_ack()));
    CHECK(answered.receive_message<wire::Ready>() == rig.ready);
  }
}

// --- Peers that break rules ---

TEST_CASE("resume: a stranger cannot resume a channel, or disturb it", "[component][connect]") {
  ListenerRig rig(resuming_options());
  RawResumer peer(rig);
  wire::Resume resume = peer.resume(1);
  SECTION("with a token that differs in the first byte") { resume.token.front() ^= 1; }
  SECTION("with a token that differs in the last byte") { resume.token.back() ^= 1; }
  SECTION("as another process") { resume.process[0] ^= 1; }
  SECTION("with the token of the listener") { resume.token = peer.handle.token; }
  SECTION("with the token that the other end gave") { resume.token = peer.hello.resume->token; }
  CHECK(peer.must_refuse(resume).code == wire::RefuseCode::kUnknownChannel);
  CHECK(rig.log.count("is not resumed") == 1);
  peer.client.sync();  // the channel is as it was
  CHECK(rig.log.count("has lost") == 0);
  rig.must_accept_real_peer();
}

TEST_CASE("resume: a peer that dials again replaces its connection; an old dial does not",
          "[component][connect]") {
  ListenerRig rig(resuming_options());
  RawResumer peer(rig);
  RawPeer again(peer.handle);
  again.send(wire::encode(peer.resume(2)));
  const auto ack = again.receive_message<wire::ResumeAck>();
  CHECK(ack.token == peer.hello.resume->token);
  CHECK(ack.process == peer.handle.process);
  peer.client.must_be_dropped();
  again.sync();
  const std::uint32_t attempt = GENERATE(1U, 2U);
  CHECK(peer.must_refuse(peer.resume(attempt)).code == wire::RefuseCode::kDuplicate);
  again.sync();
}

TEST_CASE("resume: a peer that breaks the protocol loses the channel for good",
          "[component][connect]") {
  ListenerRig rig(resuming_options());
  RawResumer peer(rig);
  SECTION("a frame that is none") { peer.client.send(std::string(64, 'x')); }
  SECTION("RESUME on an open channel") { peer.client.send(wire::encode(peer.resume(1))); }
  peer.client.must_be_dropped();
  CHECK(peer.must_refuse(peer.resume(1)).code == wire::RefuseCode::kUnknownChannel);
}

TEST_CASE("resume: whoever answers in the peer's place is not taken for it",
          "[component][connect]") {
  FakeResumable rig;
  RawPeer other = rig.fake.answer();
  other.receive_message<wire::Resume>();
  wire::ResumeAck ack = rig.good_ack();
  std::string expected = "another process answers";
  SECTION("with a token that differs") { ack.token[15] ^= 1; }
  SECTION("with its own token") { ack.token = rig.offer.token; }
  SECTION("as another process") { ack.process[15] ^= 1; }
  SECTION("with another message") {
    other.send(wire::encode(wire::StillOpen{}));
    expected = "another program answers";
  }
  SECTION("with no message") {
    other.send(std::string(64, 'x'));
    expected = "another program answers";
  }
  SECTION("with a refusal") {
    other.send(wire::encode(
        wire::Refuse{.code = wire::RefuseCode::kUnknownChannel, .text = "never heard of it"}));
    expected = "the process that answers says: never heard of it";
  }
  other.try_send(wire::encode(ack));
  rig.wait_for_death();
  const std::string& cause = rig.made->link->cause();
  CHECK(cause.find("the control channel was lost (the connection was ") == 0);
  CHECK(cause.find(") and cannot be resumed: 127.0.0.1:") != std::string::npos);
  CHECK(cause.find(expected) != std::string::npos);
  other.must_be_dropped_in_the_end();
}
