// SPDX-License-Identifier: Apache-2.0
//
// Connecting to a peer that the test plays.
#include "tests/plugin/component/connect_raw_peer.h"

using namespace beeline;
using namespace beeline::test;

namespace {

struct ConnectorRig {
  explicit ConnectorRig(const ControlOptions& options = control_options()) : b(*table, options) {}

  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  LogCapture log;
  FakeListener fake;
  Party b;

  void start() { BL_MUST(must(b.connect(fake.ticket())) == nullptr); }
};

}  // namespace

TEST_CASE("fake peer: a goodbye counts, even when a reset follows it at once",
          "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  RawPeer peer = rig.fake.welcome();
  const auto connect = peer.receive_message<wire::Connect>();
  peer.send(wire::encode(accept_for(connect)));
  const ConnectionPtr made = rig.b.wait_connect(rig.fake.ticket());
  CHECK(peer.receive_message<wire::Ready>().comm == 7);
  peer.send(wire::encode(wire::Goodbye{.comm = connect.comm, .settled = 41}));
  peer.reset();
  wait_for([&] { return made->link->state() != Link::State::kOpen; }, "the end of the link");
  CHECK(made->link->state() == Link::State::kGoodbye);
  CHECK(made->link->peer_settled() == 41);
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("fake peer: a reset without goodbye is a death", "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  RawPeer peer = rig.fake.welcome();
  peer.send(wire::encode(accept_for(peer.receive_message<wire::Connect>())));
  const ConnectionPtr made = rig.b.wait_connect(rig.fake.ticket());
  peer.receive_message<wire::Ready>();
  peer.reset();
  wait_for([&] { return made->link->state() != Link::State::kOpen; }, "the end of the link");
  CHECK(made->link->state() == Link::State::kDead);
  CHECK(made->link->cause() == "its process ended without goodbye (connection reset)");
  wait_for([&] { return rig.log.has("has lost"); }, "a line");
  CHECK(
      rig.log.has("has lost faraway (pid 4711): its process ended without goodbye "
                  "(connection reset); 1 connection ended with it"));
  CHECK(rig.log.count(LogLevel::kWarn) == 0);  // the comm warns, if it is used
}

TEST_CASE("fake peer: an answer that does not fit fails the connect", "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  RawPeer peer = rig.fake.welcome();
  wire::Accept accept = accept_for(peer.receive_message<wire::Connect>());
  SECTION("a path that was not offered") { accept.paths.emplace_back().number = 1; }
  SECTION("an address that we do not have") { accept.paths[0].gid_index = 99; }
  SECTION("a partition that we do not have") { accept.paths[0].pkey_index = 999; }
  peer.send(wire::encode(accept));
  const Error error = rig.b.wait_connect_error(rig.fake.ticket());
  CHECK(error.code == Errc::kProtocol);
  CHECK(peer.receive_message<wire::Reject>().comm == accept.our_comm);
  CHECK(rig.log.has(" does not fit what "));
}

TEST_CASE("fake peer: a path that the peer leaves out, or answers wrongly, is missing",
          "[component][connect]") {
  ControlOptions options = control_options();
  options.qp.qps_per_rail = 3;
  ConnectorRig rig(options);
  rig.start();
  RawPeer peer = rig.fake.welcome();
  const auto connect = peer.receive_message<wire::Connect>();
  CHECK(connect.counts.rails == 1);
  CHECK(connect.counts.qps_per_rail == 3);
  REQUIRE(connect.paths.size() == 3);
  wire::Accept accept = accept_for(connect);
  accept.paths.push_back(accept.paths[0]);
  accept.paths[1].number = 1;
  accept.paths[1].gid_index = 99;
  accept.missing = {{.number = 2, .why = "the other rail is down"}};
  peer.send(wire::encode(accept));
  const ConnectionPtr made = rig.b.wait_connect(rig.fake.ticket());
  const auto ready = peer.receive_message<wire::Ready>();
  CHECK(ready.paths == std::vector<std::uint8_t>{0});
  REQUIRE(ready.missing.size() == 2);
  CHECK(ready.missing[0].why.find("no GID at index 99") != std::string::npos);
  CHECK(made->paths.size() == 1);
  CHECK(rig.log.has("path 2 (the other rail is down)"));
}

TEST_CASE("fake peer: no answer to HELLO, or to CONNECT, ends at the deadline",
          "[component][connect]") {
  ControlOptions options = control_options();
  options.connect_timeout = std::chrono::seconds(1);
  ConnectorRig rig(options);
  Ticket unused;
  Listener* const listener = rig.b.listen(unused);  // so that the channel outlives the attempt
  rig.start();
  const bool welcome = GENERATE(false, true);
  std::optional<RawPeer> peer;
  if (welcome) {
    peer.emplace(rig.fake.welcome());
  } else {
    peer.emplace(rig.fake.answer());
  }
  const Error error = rig.b.wait_connect_error(rig.fake.ticket());
  CHECK(error.code == Errc::kTimeout);
  CHECK(rig.log.has(welcome ? " did not answer within 1 s" : "no control channel to "));
  // A late ACCEPT is turned down.
  if (welcome) {
    peer->send(wire::encode(accept_for(peer->receive_message<wire::Connect>())));
    CHECK(peer->receive_message<wire::Reject>().code == wire::RejectCode::kAbandoned);
  }
  rig.b.plane().close(listener);
}

TEST_CASE("fake peer: a channel that closes under a CONNECT is dialed again",
          "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  {
    RawPeer peer = rig.fake.welcome();
    peer.receive_message<wire::Connect>();
  }
  RawPeer peer = rig.fake.welcome();
  peer.send(wire::encode(accept_for(peer.receive_message<wire::Connect>())));
  const ConnectionPtr made = rig.b.wait_connect(rig.fake.ticket());
  made->link->send_goodbye(3);
  peer.receive_message<wire::Ready>();
  CHECK(peer.receive_message<wire::Goodbye>() == wire::Goodbye{.comm = 7, .settled = 3});
}

TEST_CASE("fake peer: an orderly end lets the peer finish sending", "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  RawPeer peer = rig.fake.welcome();
  const auto connect = peer.receive_message<wire::Connect>();
  peer.send(wire::encode(accept_for(connect)));
  ConnectionPtr made = rig.b.wait_connect(rig.fake.ticket());
  peer.receive_message<wire::Ready>();
  made->link->send_goodbye(0);
  made.reset();
  peer.receive_message<wire::Goodbye>();
  peer.must_be_dropped();  // only its sending side is closed: a reset could discard the goodbye
  for (int i = 0; i < 3; ++i) peer.send(wire::encode(wire::Goodbye{.comm = connect.comm}));
}

TEST_CASE("fake peer: refusals fail the connect in the peer's words", "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  SECTION("of another version") {
    RawPeer peer = rig.fake.answer();
    peer.receive_message<wire::Hello>();
    peer.send(wire::encode(
        wire::Refuse{.code = wire::RefuseCode::kVersion, .versions = {.least = 3, .most = 4}}));
    CHECK(rig.b.wait_connect_error(rig.fake.ticket()).code == Errc::kUnsupported);
    CHECK(rig.log.has(
        "the peer speaks versions 3-4 of the protocol (a newer Beeline), this host version 2"));
  }
  SECTION("of a listener that is closed") {
    RawPeer peer = rig.fake.answer();
    peer.receive_message<wire::Hello>();
    peer.send(wire::encode(
        wire::Refuse{.code = wire::RefuseCode::kUnknownListener, .text = "it is closed"}));
    CHECK(rig.b.wait_connect_error(rig.fake.ticket()).code == Errc::kPeerClosed);
    CHECK(rig.log.has("it is closed"));
  }
  SECTION("of a comm") {
    RawPeer peer = rig.fake.welcome();
    const auto connect = peer.receive_message<wire::Connect>();
    peer.send(wire::encode(wire::Reject{.comm = connect.comm,
                                        .code = wire::RejectCode::kIncompatible,
                                        .text = "cats cannot talk to dogs"}));
    CHECK(rig.b.wait_connect_error(rig.fake.ticket()).code == Errc::kUnsupported);
    CHECK(rig.log.has("cats cannot talk to dogs"));
  }
  SECTION("by another process at that address") {
    RawPeer peer = rig.fake.answer();
    peer.receive_message<wire::Hello>();
    peer.send(wire::encode(
        wire::HelloAck{.version = wire::kOurVersions.most, .host = "other", .pid = 5}));
    CHECK(rig.b.wait_connect_error(rig.fake.ticket()).code == Errc::kProtocol);
    CHECK(rig.log.has("another process answers there: other (pid 5)"));
  }
}

TEST_CASE("fake peer: a handle of another plugin or version is an error at once",
          "[component][connect]") {
  ConnectorRig rig;
  SECTION("plugin") {
    rig.fake.ticket().bytes[0] ^= std::byte{1};
    CHECK(rig.b.connect(rig.fake.ticket()).error().code == Errc::kProtocol);
    CHECK(rig.log.has("NCCL_NET_PLUGIN must be the same on all hosts"));
  }
  SECTION("version") {
    wire::Handle handle = handle_of(rig.fake.ticket());
    handle.versions = {.least = 3, .most = 3};
    wire::encode(handle, rig.fake.ticket().handle());
    CHECK(rig.b.connect(rig.fake.ticket()).error().code == Errc::kUnsupported);
    CHECK(rig.log.has("use the same build of Beeline on all hosts"));
  }
}

TEST_CASE("fake peer: of two dials that cross, that of the smaller process id is kept",
          "[component][connect]") {
  ConnectorRig rig;
  const bool is_smaller = GENERATE(false, true);
  FakeListener fake(is_smaller ? 0 : 0xff);
  Ticket to_guest;
  Listener* const listener = rig.b.listen(to_guest);
  BL_MUST(must(rig.b.connect(fake.ticket())) == nullptr);
  RawPeer dialer = fake.answer();
  dialer.receive_message<wire::Hello>();
  // The plane's HELLO gets no answer; instead the other process dials, too.
  wire::Hello hello = hello_for(handle_of(to_guest));
  hello.process = fake.process();
  RawPeer own_dial(handle_of(to_guest));
  own_dial.send(wire::encode(hello));
  if (is_smaller) {
    own_dial.receive_message<wire::HelloAck>();
    own_dial.receive_message<wire::Connect>();  // the CONNECT that waited for the plane's own dial
    dialer.must_be_dropped();
  } else {
    CHECK(own_dial.receive_message<wire::Refuse>().code == wire::RefuseCode::kDuplicate);
    own_dial.must_be_dropped();
    dialer.send(wire::encode(wire::HelloAck{.version = wire::kOurVersions.most,
                                            .process = fake.process(),
                                            .host = "faraway",
                                            .pid = 4711}));
    dialer.receive_message<wire::Connect>();
  }
  rig.b.plane().close(listener);
}

TEST_CASE(
    "fake peer: the side that gives way waits for the other dial, and dials again if none arrives",
    "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  {
    RawPeer dialer = rig.fake.answer();
    dialer.receive_message<wire::Hello>();
    dialer.send(wire::encode(wire::Refuse{.code = wire::RefuseCode::kDuplicate}));
  }
  RawPeer again = rig.fake.welcome();
  again.receive_message<wire::Connect>();
}

TEST_CASE("fake peer: the attempt number in a handle is checked before it is used",
          "[component][connect]") {
  ConnectorRig rig;
  rig.start();
  const std::uint64_t first = wire::attempt_in(rig.fake.ticket().handle());
  // A call that finds the control thread busy does nothing, and the next one tries again.
  const auto must_begin_anew = [&](Ticket& ticket, std::uint64_t remembered) {
    wire::set_attempt(ticket.handle(), remembered);
    wait_for(
        [&] {
          BL_MUST(must(rig.b.connect(ticket)) == nullptr);
          return wire::attempt_in(ticket.handle()) != remembered;
        },
        "an attempt of its own");
  };
  // NCCL has reused the memory for a handle of another listener.
  FakeListener other;
  must_begin_anew(other.ticket(), first);
  // The right handle, but an attempt of another process, since this one was forked or restarted.
  Ticket third = rig.fake.ticket();
  must_begin_anew(third, first ^ (std::uint64_t{1} << 63));
  const auto low_half = [](std::uint64_t attempt) { return static_cast<std::uint32_t>(attempt); };
  CHECK(low_half(wire::attempt_in(third.handle())) != low_half(first));
  other.welcome();
}
