// SPDX-License-Identifier: Apache-2.0
//
// A peer with a valid token that breaks the protocol on an open channel.
#include <vector>

#include "tests/plugin/component/connect_listener_rig.h"
#include "tests/support/wire_samples.h"

using namespace beeline;
using namespace beeline::test;

namespace {

std::vector<wire::Bytes> all_channel_messages() {
  return {wire::encode(sample<wire::Connect>()), wire::encode(sample<wire::Accept>()),
          wire::encode(sample<wire::Ready>()), wire::encode(sample<wire::Reject>()),
          wire::encode(sample<wire::Goodbye>())};
}

wire::Bytes head(std::uint32_t length, std::uint16_t type, std::uint16_t zero) {
  wire::Writer writer;
  writer(length, type, zero);
  return writer.take();
}

// A client for which the rig has created an end of a comm.
struct InvitedPeer {
  InvitedPeer(ListenerRig& rig, const wire::Connect& connect) : client(handle_of(rig.ticket)) {
    client.introduce(hello_for(handle_of(rig.ticket)));
    client.send(wire::encode(connect));
    comm = client.receive_message<wire::Accept>().our_comm;
  }

  RawPeer client;
  std::uint32_t comm = 0;  // the rig's number of it
};

void send_all_about(RawPeer& client, std::uint32_t comm) {
  client.send(wire::encode(wire::Ready{.comm = comm, .paths = {0}}));
  client.send(wire::encode(wire::Goodbye{.comm = comm, .settled = 7}));
  client.send(
      wire::encode(wire::Reject{.comm = comm, .code = wire::RejectCode::kFailed, .text = "no"}));
}

}  // namespace

TEST_CASE("hostile: a message cut at any byte, and a hang-up, leave nothing behind",
          "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  const std::size_t before = open_descriptors();
  for (const wire::Bytes& message : all_channel_messages()) {
    for (std::size_t size = 1; size < message.size(); ++size) {
      RawPeer client(handle);
      client.introduce(hello_for(handle));
      client.send(wire::Bytes(message.begin(), message.begin() + static_cast<long>(size)));
    }
  }
  wait_for([&] { return open_descriptors() == before; }, "the clients' descriptors");
  CHECK(rig.log.count(LogLevel::kWarn) == 0);
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: a channel that breaks the protocol is dropped with one line",
          "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  const std::size_t before = open_descriptors();
  {
    RawPeer client(handle);
    client.introduce(hello_for(handle));
    SECTION("no message at all") { client.send("garbage garbage garbage"); }
    SECTION("a HELLO again") { client.send(wire::encode(hello_for(handle))); }
    SECTION("a CONNECT of no paths") {
      client.send(wire::encode(wire::Connect{.listener = handle.listener, .token = handle.token}));
    }
    SECTION("an unknown type") { client.send(head(0, 99, 0)); }
    SECTION("type zero") { client.send(head(0, 0, 0)); }
    SECTION("a length beyond all memory") { client.send(head(UINT32_MAX, 4, 0)); }
    SECTION("a length one too long") { client.send(head(wire::kMaxBodyBytes + 1, 4, 0)); }
    SECTION("what must be zero is not") { client.send(head(0, 4, 1)); }
    SECTION("a HELLO_ACK") { client.send(wire::encode(sample<wire::HelloAck>())); }
    SECTION("a REFUSE") { client.send(wire::encode(sample<wire::Refuse>())); }
    SECTION("a body that is too short") {
      client.send(wire::make_frame(wire::MessageType::kReady, wire::Bytes(3)));
    }
    SECTION("a body that is too long") {
      client.send(wire::make_frame(wire::MessageType::kGoodbye, wire::Bytes(9)));
    }
    SECTION("an ACCEPT of too many paths") {
      wire::Accept accept = sample<wire::Accept>();
      accept.paths.resize(wire::kMaxRails + 1);
      client.send(wire::encode(accept));
    }
    SECTION("a READY of one path twice") {
      client.send(wire::encode(wire::Ready{.comm = 1, .paths = {0, 0}}));
    }
    SECTION("a READY without a path") { client.send(wire::encode(wire::Ready{.comm = 1})); }
    SECTION("a CONNECT that announces more GIDs than it has") {
      wire::Bytes connect = wire::encode(sample<wire::Connect>());
      connect.resize(connect.size() - 40);
      connect[0] = static_cast<std::byte>((connect.size() - wire::kFrameHeadBytes) & 0xff);
      connect[1] = static_cast<std::byte>((connect.size() - wire::kFrameHeadBytes) >> 8);
      client.send(connect);
    }
    client.must_be_dropped();
  }
  wait_for([&] { return open_descriptors() == before; }, "the client's descriptors");
  CHECK(rig.log.count("is dropped") == 1);
  CHECK(rig.log.has("it broke the protocol"));
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: READY twice delivers one connection", "[component][connect]") {
  ListenerRig rig;
  const wire::Connect connect = rig.connect_of_real_peer();
  InvitedPeer invited(rig, connect);
  invited.client.send(wire::encode(wire::Ready{.comm = invited.comm, .paths = {0}}));
  invited.client.send(wire::encode(wire::Ready{.comm = invited.comm, .paths = {0}}));
  const ConnectionPtr made = rig.a.wait_accept(rig.listener);
  invited.client.sync();
  CHECK(must(rig.a.accept(rig.listener)) == nullptr);
  CHECK(made->link->state() == Link::State::kOpen);
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: the numbers of another channel's comms mean nothing", "[component][connect]") {
  ListenerRig rig;
  const wire::Connect connect = rig.connect_of_real_peer();
  InvitedPeer victim(rig, connect);
  RawPeer client(handle_of(rig.ticket));
  client.introduce(hello_for(handle_of(rig.ticket)));
  // While the victim's connection is being established.
  send_all_about(client, victim.comm);
  client.sync();
  CHECK(must(rig.a.accept(rig.listener)) == nullptr);
  victim.client.send(wire::encode(wire::Ready{.comm = victim.comm, .paths = {0}}));
  const ConnectionPtr made = rig.a.wait_accept(rig.listener);
  // And afterwards.
  send_all_about(client, victim.comm);
  client.sync();
  CHECK(made->link->state() == Link::State::kOpen);
  victim.client.send(wire::encode(wire::Goodbye{.comm = victim.comm, .settled = 9}));
  wait_for([&] { return made->link->state() != Link::State::kOpen; }, "the goodbye");
  CHECK(made->link->state() == Link::State::kGoodbye);
  CHECK(made->link->peer_settled() == 9);
}

TEST_CASE("hostile: the first end of a comm is the one that counts", "[component][connect]") {
  ListenerRig rig;
  const wire::Connect connect = rig.connect_of_real_peer();
  InvitedPeer invited(rig, connect);
  invited.client.send(wire::encode(wire::Ready{.comm = invited.comm, .paths = {0}}));
  const ConnectionPtr made = rig.a.wait_accept(rig.listener);
  invited.client.send(wire::encode(wire::Goodbye{.comm = invited.comm, .settled = 1}));
  invited.client.send(wire::encode(wire::Goodbye{.comm = invited.comm, .settled = 2}));
  invited.client.send(wire::encode(wire::Reject{.comm = invited.comm, .text = "and dead"}));
  invited.client.sync();
  invited.client.reset();
  CHECK(made->link->state() == Link::State::kGoodbye);
  CHECK(made->link->peer_settled() == 1);
}

TEST_CASE("hostile: messages that are echoed back do no harm", "[component][connect]") {
  ListenerRig rig;
  const wire::Connect connect = rig.connect_of_real_peer();
  RawPeer mirror(handle_of(rig.ticket));
  mirror.introduce(hello_for(handle_of(rig.ticket)));
  mirror.send(wire::encode(connect));
  const auto accept = mirror.receive_message<wire::Accept>();
  mirror.send(wire::encode(accept));
  const auto reject = mirror.receive_message<wire::Reject>();
  CHECK(reject.comm == accept.our_comm);
  mirror.send(wire::encode(reject));
  mirror.sync();  // no other message arrives, since a REJECT is not answered
  CHECK_FALSE(rig.a.accept(rig.listener));  // this peer has been invited
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: a peer that sends and never reads is dropped before its queue grows large",
          "[component][connect]") {
  ListenerRig rig(long_peer_timeout());
  const wire::Handle handle = handle_of(rig.ticket);
  RawPeer client(handle);
  client.introduce(hello_for(handle));
  // Each is answered with 43 bytes, of which the kernel buffers a varying number.
  wire::Bytes thousand;
  for (std::uint32_t comm = 0; comm < 1000; ++comm) {
    wire::Accept accept{.comm = 1'000'000 + comm, .our_comm = comm};
    accept.paths.emplace_back();
    const wire::Bytes one = wire::encode(accept);
    thousand.insert(thousand.end(), one.begin(), one.end());
  }
  int thousands = 0;
  while (thousands < 2000 && client.try_send(thousand)) ++thousands;
  CHECK(thousands < 2000);
  wait_for([&] { return rig.log.has("it does not read"); }, "a line");
  CHECK(rig.log.count("is dropped") == 1);
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: accept() fails once its invited peer will not become ready",
          "[component][connect]") {
  ControlOptions options = control_options();
  Errc expected = Errc::kPeerClosed;
  bool falls_silent = false;
  bool comes_again = false;
  SECTION("it falls silent") {
    options.connect_timeout = std::chrono::milliseconds(200);
    falls_silent = true;
    expected = Errc::kTimeout;
  }
  SECTION("it gives up") {}
  SECTION("its channel ends") { options.connect_timeout = std::chrono::seconds(1); }
  SECTION("its channel ends, and it comes again") { comes_again = true; }
  const bool gives_up = !falls_silent && !comes_again && options.connect_timeout == kPatience;
  ListenerRig rig(options);
  InvitedPeer invited(rig, rig.connect_of_real_peer());
  if (gives_up) {
    invited.client.send(wire::encode(
        wire::Reject{.comm = invited.comm, .code = wire::RejectCode::kFailed, .text = "no"}));
  } else if (!falls_silent) {
    invited.client.reset();
  }
  if (comes_again) return rig.must_accept_real_peer();
  Error error;
  wait_for(
      [&] {
        const auto made = rig.a.accept(rig.listener);
        if (!made) error = made.error();
        return !made;
      },
      "an accept that fails");
  CHECK(error.code == expected);
}
