// SPDX-License-Identifier: Apache-2.0
//
// Inbound connections of peers that do not speak the protocol or have no valid token: each is
// dropped or refused, and the real peer still connects.
#include "tests/plugin/component/connect_listener_rig.h"

using namespace beeline;
using namespace beeline::test;

namespace {

wire::Bytes changed(wire::Bytes bytes, std::size_t at) {
  bytes.at(at) ^= std::byte{0x20};
  return bytes;
}

}  // namespace

TEST_CASE("inbound: a peer that does not speak the protocol is dropped", "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  const wire::Bytes hello = wire::encode(hello_for(handle));
  RawPeer client(handle);
  SECTION("another protocol") { client.send("GET / HTTP/1.1\r\n\r\n"); }
  SECTION("zeroes") { client.send(std::string(64, '\0')); }
  SECTION("a HELLO with another magic") { client.send(changed(hello, wire::kFrameHeadBytes)); }
  SECTION("another message") { client.send(wire::encode(wire::Ready{.comm = 1, .paths = {0}})); }
  SECTION("a HELLO that announces too much") {
    client.send(wire::make_frame(wire::MessageType::kHello, wire::Bytes(513)));
  }
  SECTION("a HELLO with something behind it inside") {
    wire::Bytes body(hello.begin() + wire::kFrameHeadBytes, hello.end());
    body.push_back(std::byte{0});
    client.send(wire::make_frame(wire::MessageType::kHello, body));
  }
  client.must_be_dropped();
  CHECK(rig.log.count("is dropped") == 1);
  rig.must_accept_real_peer();
}

TEST_CASE("inbound: a peer without a valid token is refused", "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  wire::Hello hello = hello_for(handle);
  SECTION("another token") { hello.token[15] ^= 1; }
  SECTION("another listener") { hello.listener += 1; }
  RawPeer client(handle);
  client.send(wire::encode(hello));
  CHECK(client.receive_message<wire::Refuse>().code == wire::RefuseCode::kUnknownListener);
  client.must_be_dropped();
  rig.must_accept_real_peer();
}

TEST_CASE("inbound: a peer with other versions is told the supported ones, and the log has both",
          "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  wire::Hello hello = hello_for(handle);
  hello.versions = {.least = 3, .most = 4};
  RawPeer client(handle);
  client.send(wire::encode(hello));
  const auto refusal = client.receive_message<wire::Refuse>();
  CHECK(refusal.code == wire::RefuseCode::kVersion);
  CHECK(refusal.versions == wire::kOurVersions);
  client.must_be_dropped();
  CHECK(rig.log.has(
      "the peer speaks versions 3-4 of the protocol (a newer Beeline), this host version 2"));
  rig.must_accept_real_peer();
}

TEST_CASE("inbound: a HELLO may arrive byte by byte", "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  RawPeer client(handle);
  for (const std::byte byte : wire::encode(hello_for(handle))) client.send(wire::Bytes{byte});
  CHECK(client.receive_message<wire::HelloAck>().process == handle.process);
}

TEST_CASE("inbound: on a channel, too, each comm needs a valid token", "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  RawPeer client(handle);
  client.send(wire::encode(hello_for(handle)));
  client.receive_message<wire::HelloAck>();
  wire::Connect connect{.listener = handle.listener, .token = handle.token, .comm = 5};
  connect.token[0] ^= 1;
  connect.paths.emplace_back();
  client.send(wire::encode(connect));
  const auto reject = client.receive_message<wire::Reject>();
  CHECK(reject.comm == 5);
  CHECK(reject.code == wire::RejectCode::kUnknownListener);
  rig.must_accept_real_peer();
}

TEST_CASE("inbound: a peer that does not read delays no other, and misses no message",
          "[component][connect]") {
  ListenerRig rig(long_peer_timeout());
  const wire::Handle handle = handle_of(rig.ticket);
  RawPeer client(handle);
  client.send(wire::encode(hello_for(handle)));
  client.receive_message<wire::HelloAck>();
  // Each message is answered: more answers than the kernel buffers for a peer that does not read.
  constexpr std::uint32_t kMessages = 150'000;
  for (std::uint32_t comm = 0; comm < kMessages; ++comm) {
    wire::Accept accept{.comm = 1'000'000 + comm, .our_comm = comm};
    accept.paths.emplace_back();
    client.send(wire::encode(accept));
  }
  rig.must_accept_real_peer();
  std::uint32_t heard = 0;
  while (heard < kMessages && client.receive_message<wire::Reject>().comm == heard) ++heard;
  CHECK(heard == kMessages);
}

TEST_CASE("inbound: messages about unknown comms do no harm", "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  RawPeer client(handle);
  client.send(wire::encode(hello_for(handle)));
  client.receive_message<wire::HelloAck>();
  for (const std::uint32_t comm : {0U, 1U, 2U, 77U, UINT32_MAX}) {
    client.send(wire::encode(wire::Ready{.comm = comm, .paths = {0}}));
    client.send(wire::encode(wire::Goodbye{.comm = comm, .settled = 5}));
    client.send(
        wire::encode(wire::Reject{.comm = comm, .code = wire::RejectCode::kFailed, .text = "no"}));
    wire::Accept accept{.comm = comm, .our_comm = comm};
    accept.paths.emplace_back();
    client.send(wire::encode(accept));
    CHECK(client.receive_message<wire::Reject>().comm == comm);  // answers the ACCEPT
  }
  rig.must_accept_real_peer();
}
