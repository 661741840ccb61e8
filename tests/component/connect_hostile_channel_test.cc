// SPDX-License-Identifier: Apache-2.0
//
// Who was invited and means ill: on a channel that is open, it says what no Beeline says.
#include <vector>

#include "tests/component/connect_house.h"
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
  writer.number(length);
  writer.number(type);
  writer.number(zero);
  return writer.take();
}

// A stranger with an end of a comm that the house has made for it.
struct Intruder {
  Intruder(House& house, const wire::Connect& connect) : stranger(handle_of(house.ticket)) {
    stranger.enter(hello_for(handle_of(house.ticket)));
    stranger.say(wire::encode(connect));
    comm = stranger.hear_message<wire::Accept>().our_comm;
  }

  Stranger stranger;
  std::uint32_t comm = 0;  // the house's number
};

void say_all_about(Stranger& stranger, std::uint32_t comm) {
  stranger.say(wire::encode(wire::Ready{.comm = comm}));
  stranger.say(wire::encode(wire::Goodbye{.comm = comm, .settled = 7}));
  stranger.say(
      wire::encode(wire::Reject{.comm = comm, .code = wire::RejectCode::kFailed, .text = "no"}));
}

}  // namespace

TEST_CASE("hostile: a message cut at any byte, and a hang-up, leave nothing behind",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  const std::size_t before = open_descriptors();
  for (const wire::Bytes& message : all_channel_messages()) {
    for (std::size_t size = 1; size < message.size(); ++size) {
      Stranger stranger(handle);
      stranger.enter(hello_for(handle));
      stranger.say(wire::Bytes(message.begin(), message.begin() + static_cast<long>(size)));
    }
  }
  wait_for([&] { return open_descriptors() == before; }, "the strangers' descriptors");
  CHECK(house.log.count(LogLevel::kWarn) == 0);
  house.real_peer_still_comes();
}

TEST_CASE("hostile: a message cut at any byte, and silence, keep nobody waiting",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  std::vector<Stranger> strangers;
  for (const wire::Bytes& message : all_channel_messages()) {
    for (std::size_t size = 1; size < message.size(); size += 3) {
      const auto number = static_cast<std::uint32_t>(strangers.size());
      strangers.emplace_back(handle).enter(hello_for(handle, number));
      strangers.back().say(wire::Bytes(message.begin(), message.begin() + static_cast<long>(size)));
    }
  }
  house.real_peer_still_comes();
  CHECK(house.log.count(LogLevel::kWarn) == 0);
}

TEST_CASE("hostile: a channel that breaks the protocol is dropped with one line",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  const std::size_t before = open_descriptors();
  {
    Stranger stranger(handle);
    stranger.enter(hello_for(handle));
    SECTION("an unknown type") { stranger.say(head(0, 99, 0)); }
    SECTION("type zero") { stranger.say(head(0, 0, 0)); }
    SECTION("a length beyond all memory") { stranger.say(head(UINT32_MAX, 4, 0)); }
    SECTION("a length one too long") { stranger.say(head(wire::kMaxBodyBytes + 1, 4, 0)); }
    SECTION("what must be zero is not") { stranger.say(head(0, 4, 1)); }
    SECTION("a HELLO_ACK") { stranger.say(wire::encode(sample<wire::HelloAck>())); }
    SECTION("a REFUSE") { stranger.say(wire::encode(sample<wire::Refuse>())); }
    SECTION("a body that is too short") {
      stranger.say(wire::make_frame(wire::MessageType::kReady, wire::Bytes(3)));
    }
    SECTION("a body that is too long") {
      stranger.say(wire::make_frame(wire::MessageType::kGoodbye, wire::Bytes(9)));
    }
    SECTION("an ACCEPT of too many paths") {
      wire::Accept accept = sample<wire::Accept>();
      accept.paths.resize(wire::kMaxRails + 1);
      stranger.say(wire::encode(accept));
    }
    SECTION("a CONNECT that announces more GIDs than it has") {
      wire::Bytes connect = wire::encode(sample<wire::Connect>());
      connect.resize(connect.size() - 40);
      connect[0] = static_cast<std::byte>((connect.size() - wire::kFrameHeadBytes) & 0xff);
      connect[1] = static_cast<std::byte>((connect.size() - wire::kFrameHeadBytes) >> 8);
      stranger.say(connect);
    }
    stranger.must_be_dropped();
  }
  wait_for([&] { return open_descriptors() == before; }, "the stranger's descriptors");
  CHECK(house.log.count("is dropped") == 1);
  CHECK(house.log.has("it broke the protocol"));
  house.real_peer_still_comes();
}

TEST_CASE("hostile: READY twice delivers one connection", "[component][connect]") {
  House house;
  const wire::Connect connect = house.connect_like_a_peer();
  Intruder intruder(house, connect);
  intruder.stranger.say(wire::encode(wire::Ready{.comm = intruder.comm}));
  intruder.stranger.say(wire::encode(wire::Ready{.comm = intruder.comm}));
  const Made made = house.a.wait_accept(house.listener);
  intruder.stranger.sync();
  CHECK(must(house.a.accept(house.listener)) == nullptr);
  CHECK(made->link->state() == Link::State::kOpen);
  house.real_peer_still_comes();
}

TEST_CASE("hostile: an ACCEPT of an end that was accepted changes nothing",
          "[component][connect]") {
  House house;
  const wire::Connect connect = house.connect_like_a_peer();
  Intruder intruder(house, connect);
  intruder.stranger.say(wire::encode(wire::Ready{.comm = intruder.comm}));
  const Made made = house.a.wait_accept(house.listener);
  wire::Accept accept{.comm = intruder.comm, .our_comm = 3};
  accept.paths.emplace_back();
  intruder.stranger.say(wire::encode(accept));
  CHECK(intruder.stranger.hear_message<wire::Reject>().comm == 3);
  CHECK(made->link->state() == Link::State::kOpen);
}

TEST_CASE("hostile: the numbers of another channel's comms mean nothing", "[component][connect]") {
  House house;
  const wire::Connect connect = house.connect_like_a_peer();
  Intruder victim(house, connect);
  Stranger stranger(handle_of(house.ticket));
  stranger.enter(hello_for(handle_of(house.ticket)));
  // While the victim's end is being made,
  say_all_about(stranger, victim.comm);
  stranger.sync();
  CHECK(must(house.a.accept(house.listener)) == nullptr);
  victim.stranger.say(wire::encode(wire::Ready{.comm = victim.comm}));
  const Made made = house.a.wait_accept(house.listener);
  // and when it is.
  say_all_about(stranger, victim.comm);
  stranger.sync();
  CHECK(made->link->state() == Link::State::kOpen);
  victim.stranger.say(wire::encode(wire::Goodbye{.comm = victim.comm, .settled = 9}));
  wait_for([&] { return made->link->state() != Link::State::kOpen; }, "the goodbye");
  CHECK(made->link->state() == Link::State::kGoodbye);
  CHECK(made->link->peer_settled() == 9);
}

TEST_CASE("hostile: the first end of a comm is the one that counts", "[component][connect]") {
  House house;
  const wire::Connect connect = house.connect_like_a_peer();
  Intruder intruder(house, connect);
  intruder.stranger.say(wire::encode(wire::Ready{.comm = intruder.comm}));
  const Made made = house.a.wait_accept(house.listener);
  intruder.stranger.say(wire::encode(wire::Goodbye{.comm = intruder.comm, .settled = 1}));
  intruder.stranger.say(wire::encode(wire::Goodbye{.comm = intruder.comm, .settled = 2}));
  intruder.stranger.say(wire::encode(wire::Reject{.comm = intruder.comm, .text = "and dead"}));
  intruder.stranger.sync();
  intruder.stranger.reset();
  CHECK(made->link->state() == Link::State::kGoodbye);
  CHECK(made->link->peer_settled() == 1);
}

TEST_CASE("hostile: what the house says, said back to it, does no harm", "[component][connect]") {
  House house;
  const wire::Connect connect = house.connect_like_a_peer();
  Stranger mirror(handle_of(house.ticket));
  mirror.enter(hello_for(handle_of(house.ticket)));
  mirror.say(wire::encode(connect));
  const auto accept = mirror.hear_message<wire::Accept>();
  mirror.say(wire::encode(accept));
  const auto reject = mirror.hear_message<wire::Reject>();
  CHECK(reject.comm == accept.our_comm);
  mirror.say(wire::encode(reject));
  mirror.sync();  // and no more: nobody answers a REJECT
  CHECK(must(house.a.accept(house.listener)) == nullptr);
  house.real_peer_still_comes();
}

TEST_CASE("hostile: who talks and never listens is dropped before it costs much",
          "[component][connect]") {
  House house(patient_with_the_deaf());
  const wire::Handle handle = handle_of(house.ticket);
  Stranger stranger(handle);
  stranger.enter(hello_for(handle));
  // Each is answered with 43 bytes; what the kernel keeps of them differs.
  wire::Bytes thousand;
  for (std::uint32_t comm = 0; comm < 1000; ++comm) {
    wire::Accept accept{.comm = 1'000'000 + comm, .our_comm = comm};
    accept.paths.emplace_back();
    const wire::Bytes one = wire::encode(accept);
    thousand.insert(thousand.end(), one.begin(), one.end());
  }
  int thousands = 0;
  while (thousands < 2000 && stranger.try_say(thousand)) ++thousands;
  CHECK(thousands < 2000);
  wait_for([&] { return house.log.has("it does not read"); }, "a line");
  CHECK(house.log.count("is dropped") == 1);
  house.real_peer_still_comes();
}

TEST_CASE("hostile: comms that do not come about fill no log", "[component][connect]") {
  House house;
  wire::Connect connect = house.connect_like_a_peer();
  connect.window.length = 0;
  Stranger stranger(handle_of(house.ticket));
  stranger.enter(hello_for(handle_of(house.ticket)));
  for (std::uint32_t comm = 0; comm < 2000; ++comm) {
    connect.comm = comm;
    stranger.say(wire::encode(connect));
    REQUIRE(stranger.hear_message<wire::Reject>().code == wire::RejectCode::kIncompatible);
  }
  CHECK(house.log.count("accept on") >= 10);
  CHECK(house.log.count("accept on") <= 20 + 12);
  house.real_peer_still_comes();
}
