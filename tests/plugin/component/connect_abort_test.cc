// SPDX-License-Identifier: Apache-2.0
//
// Connections that are abandoned: a communicator is aborted in each state of the handshake, on
// either side, or a program stops calling connect or accept.
#include "tests/plugin/component/connect_raw_peer.h"

using namespace beeline;
using namespace beeline::test;

namespace {

constexpr OwnerId kAborted = 7;
constexpr OwnerId kOther = 8;
constexpr const char* kGivenUp = "it says: its end of the connection was given up";

ControlOptions forgetting_options(std::chrono::milliseconds timeout) {
  ControlOptions options = control_options();
  options.forgotten_timeout = timeout;
  options.connect_timeout = std::chrono::hours(1);  // so that it does not end the attempt
  return options;
}

// Two processes on one host, as far as the planes can tell.
struct AbortRig {
  explicit AbortRig(const ControlOptions& options = control_options())
      : a(*table, options), b(*table, options) {}

  // Waits until no queue pair and no control thread is left.
  static void must_leave_nothing() {
    wait_for([] { return CountedVerbs::objects() == 0; }, "the end of all queue pairs");
    wait_for([] { return threads_named("beeline-ctl") == 0; }, "the control threads' end");
  }

  CountedVerbs verbs;
  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = verbs.scan(fabric);
  LogCapture log;
  Party a;
  Party b;
};

// A connect of process b to a listener that the test plays.
struct AbortedConnect : AbortRig {
  using AbortRig::AbortRig;

  void begin(OwnerId owner = kAborted) {
    BL_MUST(must(b.connect(fake.ticket(), "softnic1", {.owner = owner})) == nullptr);
  }

  FakeListener fake;
};

// The CONNECT that a control plane would send to this listener.
wire::Connect connect_for(AbortRig& rig, Ticket& ticket) {
  FakeListener fake;
  BL_MUST(must(rig.b.connect(fake.ticket(), "softnic1", {.owner = kAborted})) == nullptr);
  auto connect = fake.welcome().receive_message<wire::Connect>();
  rig.b.plane().reclaim(kAborted);
  const wire::Handle handle = handle_of(ticket);
  connect.listener = handle.listener;
  connect.token = handle.token;
  return connect;
}

RawPeer introduce(Ticket& ticket) {
  const wire::Handle handle = handle_of(ticket);
  RawPeer client(handle);
  client.send(wire::encode(hello_for(handle)));
  client.receive_message<wire::HelloAck>();
  return client;
}

}  // namespace

TEST_CASE("abort: a connect that is still dialing closes its socket", "[component][connect]") {
  AbortedConnect rig;
  rig.begin();
  RawPeer peer = rig.fake.answer();
  const bool spoken = GENERATE(false, true);
  if (spoken) peer.receive_message<wire::Hello>();
  rig.b.plane().reclaim(kAborted);
  if (spoken) peer.must_be_dropped();
  AbortRig::must_leave_nothing();
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("abort: a connect that waits for an answer rejects it when it arrives",
          "[component][connect]") {
  AbortedConnect rig;
  rig.begin();
  RawPeer peer = rig.fake.welcome();
  const auto connect = peer.receive_message<wire::Connect>();
  rig.b.plane().reclaim(kAborted);
  wait_for([] { return CountedVerbs::objects() == 0; }, "the end of the queue pair");
  CHECK(threads_named("beeline-ctl") == 1);
  peer.send(wire::encode(accept_for(connect)));
  const auto reject = peer.receive_message<wire::Reject>();
  CHECK(reject.comm == accept_for(connect).our_comm);
  CHECK(reject.code == wire::RejectCode::kAbandoned);
  peer.must_be_dropped();
  AbortRig::must_leave_nothing();
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("abort: a connection that connect has not returned is closed, and its peer is told",
          "[component][connect]") {
  AbortRig rig;
  Ticket ticket;
  Listener* const listener = rig.a.listen(ticket);
  BL_MUST(must(rig.b.connect(ticket, "softnic1", {.owner = kAborted})) == nullptr);
  ConnectionPtr receiver = rig.a.wait_accept(listener);
  rig.b.plane().reclaim(kAborted);
  wait_for([&] { return receiver->link->state() == Link::State::kDead; }, "the news");
  CHECK(receiver->link->cause() == kGivenUp);
  wait_for([] { return CountedVerbs::objects() == 2; }, "the end of the queue pair");
  receiver.reset();
  rig.a.plane().close(listener);
  AbortRig::must_leave_nothing();
}

TEST_CASE("abort: a peer that is being accepted is told that the listener is gone",
          "[component][connect]") {
  AbortRig rig;
  Ticket ticket;
  Listener* const listener = rig.a.listen(ticket, "softnic0", {.owner = kAborted});
  const wire::Connect connect = connect_for(rig, ticket);
  RawPeer peer = introduce(ticket);
  peer.send(wire::encode(connect));
  peer.receive_message<wire::Accept>();
  const bool by_owner = GENERATE(true, false);
  if (by_owner) {
    rig.a.plane().reclaim(kAborted);
  } else {
    rig.a.plane().close(listener);
  }
  const auto reject = peer.receive_message<wire::Reject>();
  CHECK(reject.comm == connect.comm);
  CHECK(reject.code == wire::RejectCode::kAbandoned);
  peer.must_be_dropped();
  AbortRig::must_leave_nothing();
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("abort: a peer that dies while being accepted leaves nothing behind",
          "[component][connect]") {
  AbortRig rig;
  Ticket ticket;
  Listener* const listener = rig.a.listen(ticket);
  const wire::Connect connect = connect_for(rig, ticket);
  RawPeer peer = introduce(ticket);
  peer.send(wire::encode(connect));
  peer.receive_message<wire::Accept>();
  peer.reset();
  wait_for([] { return CountedVerbs::objects() == 0; }, "the end of the queue pair");
  CHECK(must(rig.a.accept(listener)) == nullptr);
  rig.a.plane().close(listener);
  AbortRig::must_leave_nothing();
}

TEST_CASE("abort: a connection that was not accepted ends with its owner, or its listener",
          "[component][connect]") {
  AbortRig rig;
  Ticket ticket;
  Listener* const aborted = rig.a.listen(ticket, "softnic0", {.owner = kAborted});
  ConnectionPtr sender = rig.b.wait_connect(ticket);
  {
    // The last message of this handshake is behind that of the first one, on the same channel: when
    // it has come, the first connection waits to be accepted.
    Ticket next;
    Listener* const listener = rig.a.listen(next);
    ConnectionPtr next_sender = rig.b.wait_connect(next);
    ConnectionPtr next_receiver = rig.a.wait_accept(listener);
    rig.a.plane().close(listener);
  }
  const bool by_owner = GENERATE(true, false);
  if (by_owner) {
    rig.a.plane().reclaim(kAborted);
  } else {
    rig.a.plane().close(aborted);
  }
  wait_for([&] { return sender->link->state() == Link::State::kDead; }, "the news");
  CHECK(sender->link->cause() == kGivenUp);
  sender.reset();
  AbortRig::must_leave_nothing();
}

TEST_CASE("abort: a connect to a listener that was reclaimed fails and says why",
          "[component][connect]") {
  AbortRig rig;
  Ticket ticket;
  rig.a.listen(ticket, "softnic0", {.owner = kAborted});
  Ticket kept;  // so that the process still listens
  Listener* const listener = rig.a.listen(kept);
  rig.a.plane().reclaim(kAborted);
  CHECK(rig.b.wait_connect_error(ticket).code == Errc::kPeerClosed);
  CHECK(rig.log.has("no such listener on "));
  rig.a.plane().close(listener);
}

TEST_CASE("abort: connections of other owners continue", "[component][connect]") {
  AbortRig rig;
  for (const OwnerId owner : {kOther, kNoOwner}) {
    Ticket gone;
    Ticket ticket;
    rig.a.listen(gone, "softnic0", {.owner = kAborted});
    Listener* const listener = rig.a.listen(ticket, "softnic0", {.owner = owner});
    BL_MUST(must(rig.b.connect(gone, "softnic1", {.owner = kAborted})) == nullptr);
    BL_MUST(must(rig.b.connect(ticket, "softnic1", {.owner = owner})) == nullptr);
    rig.a.plane().reclaim(kAborted);
    rig.b.plane().reclaim(kAborted);
    rig.b.plane().reclaim(kNoOwner);  // must do nothing
    const ConnectionPtr sender = rig.b.wait_connect(ticket);
    const ConnectionPtr receiver = rig.a.wait_accept(listener);
    prove_write(*receiver, *sender);
    rig.a.plane().close(listener);
  }
  AbortRig::must_leave_nothing();
}

TEST_CASE("abort: a connect that is not called again is given up after a while",
          "[component][connect]") {
  AbortedConnect rig(forgetting_options(std::chrono::milliseconds(200)));
  rig.begin(kNoOwner);
  RawPeer peer = rig.fake.welcome();
  peer.receive_message<wire::Connect>();
  AbortRig::must_leave_nothing();
}

TEST_CASE("abort: a connect that is called again, or has an owner, is not given up",
          "[component][connect]") {
  AbortedConnect rig(forgetting_options(std::chrono::seconds(1)));
  const bool asked = GENERATE(true, false);
  rig.begin(asked ? kNoOwner : kOther);
  RawPeer peer = rig.fake.welcome();
  const auto connect = peer.receive_message<wire::Connect>();
  const auto until = Clock::now() + std::chrono::seconds(2);
  wait_for(
      [&] {
        if (asked) BL_MUST(must(rig.b.connect(rig.fake.ticket())) == nullptr);
        return Clock::now() > until;
      },
      "some time to pass");
  peer.send(wire::encode(accept_for(connect)));
  const ConnectionPtr made = rig.b.wait_connect(rig.fake.ticket());
  CHECK(peer.receive_message<wire::Ready>().comm == accept_for(connect).our_comm);
}

TEST_CASE(
    "abort: a connection that connect never returns is given up, and its handle can be used again",
    "[component][connect]") {
  AbortRig rig(forgetting_options(std::chrono::milliseconds(200)));
  Ticket ticket;
  Listener* const listener = rig.a.listen(ticket);
  BL_MUST(must(rig.b.connect(ticket)) == nullptr);
  {
    const ConnectionPtr receiver = rig.a.wait_accept(listener);
    wait_for([&] { return receiver->link->state() == Link::State::kDead; }, "the news");
    CHECK(receiver->link->cause() == kGivenUp);
  }
  const ConnectionPtr sender = rig.b.wait_connect(ticket);
  const ConnectionPtr receiver = rig.a.wait_accept(listener);
  prove_write(*receiver, *sender);
  rig.a.plane().close(listener);
}

TEST_CASE(
    "abort: a connection that nobody accepts is given up when its peer is gone, or after a while",
    "[component][connect]") {
  AbortRig rig(forgetting_options(std::chrono::milliseconds(100)));
  Ticket ticket;
  Listener* const listener = rig.a.listen(ticket);
  ConnectionPtr sender = rig.b.wait_connect(ticket);
  SECTION("it has gone") {
    sender->link->send_goodbye(0);
    sender.reset();
    wait_for([] { return CountedVerbs::objects() == 0; }, "the end of the queue pair");
  }
  SECTION("it waits") {
    wait_for([&] { return sender->link->state() == Link::State::kDead; }, "the news");
    // cppcheck-suppress nullPointer ; only one section runs at a time
    CHECK(sender->link->cause() == kGivenUp);
  }
  CHECK(must(rig.a.accept(listener)) == nullptr);
  rig.a.plane().close(listener);
}
