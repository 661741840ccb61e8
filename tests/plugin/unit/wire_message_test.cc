// SPDX-License-Identifier: Apache-2.0
//
// Messages of the control channel: an encoded message is decoded again, and other bytes are an
// error.
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "tests/support/catch.h"
#include "tests/support/wire_samples.h"

using namespace beeline;
using namespace beeline::test;
using namespace beeline::wire;

namespace {

// Without the head of the frame.
template <class Message>
Bytes body_of(const Message& message) {
  const Bytes frame = encode(message);
  return Bytes(frame.begin() + kFrameHeadBytes, frame.end());
}

template <class Message>
bool is_refused(const Message& message) {
  return !decode<Message>(body_of(message));
}

// Checks that this value alone is refused: without it, the sample decodes.
template <class Message>
void check_refused(const char* what, const std::function<void(Message&)>& spoil) {
  INFO(what);
  Message message = sample<Message>();
  REQUIRE_FALSE(is_refused(message));
  spoil(message);
  CHECK(is_refused(message));
}

void check_offer(const char* what, const std::function<void(PathOffer&)>& spoil) {
  check_refused<Connect>(what, [&](Connect& message) { spoil(message.paths[1]); });
}
void check_answer(const char* what, const std::function<void(PathAnswer&)>& spoil) {
  check_refused<Accept>(what, [&](Accept& message) { spoil(message.paths[0]); });
}

template <class E>
E beyond(E last) {
  return static_cast<E>(static_cast<int>(last) + 1);
}

}  // namespace

TEMPLATE_TEST_CASE("wire message: what was encoded is decoded", "[unit][wire]", Hello, HelloAck,
                   Refuse, Connect, Accept, Ready, Reject, Goodbye, Resume, ResumeAck, StillOpen,
                   Fenced, OfferPath, AnswerPath, PathNote) {
  const auto message = sample<TestType>();
  FrameSplitter splitter;
  splitter.append(encode(message));
  const auto frame = splitter.next();
  REQUIRE((frame && *frame));
  CHECK((*frame)->type == TestType::kType);
  const auto decoded = decode<TestType>((*frame)->body);
  REQUIRE(decoded);
  CHECK(*decoded == message);
}

TEMPLATE_TEST_CASE("wire message: one that is too short or too long is an error", "[unit][wire]",
                   Hello, HelloAck, Refuse, Connect, Accept, Ready, Reject, Goodbye, Resume,
                   ResumeAck, StillOpen, Fenced, OfferPath, AnswerPath, PathNote) {
  Bytes body = body_of(sample<TestType>());
  for (std::size_t size = 0; size < body.size(); ++size) {
    INFO("cut to " << size);
    CHECK_FALSE(decode<TestType>(ByteView(body).first(size)));
  }
  body.push_back(std::byte{0});
  CHECK_FALSE(decode<TestType>(body));
}

TEMPLATE_TEST_CASE("wire message: random bytes do not harm the decoder", "[unit][wire]", Hello,
                   HelloAck, Refuse, Connect, Accept, Ready, Reject, Goodbye, Resume, ResumeAck,
                   StillOpen, Fenced, OfferPath, AnswerPath, PathNote) {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const Bytes good = body_of(sample<TestType>());
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = good;
    const std::size_t changes = 1 + random() % 8;
    for (std::size_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    const auto decoded = decode<TestType>(bytes);
    // A message that is accepted can be encoded again.
    if (decoded) CHECK(body_of(*decoded).size() == bytes.size());
  }
}

TEST_CASE("wire message: a number out of its range is an error", "[unit][wire]") {
  check_refused<Hello>("no version", [](Hello& m) { m.versions = {.least = 0, .most = 1}; });
  check_refused<Hello>("backward", [](Hello& m) { m.versions = {.least = 2, .most = 1}; });
  check_refused<Refuse>("backward", [](Refuse& m) { m.versions = {.least = 2, .most = 1}; });
  check_refused<HelloAck>("version", [](HelloAck& m) { m.version = kOurVersions.most + 1; });
  check_refused<Refuse>("code", [](Refuse& m) { m.code = beyond(RefuseCode::kUnknownChannel); });
  check_refused<Reject>("code", [](Reject& m) { m.code = beyond(RejectCode::kAbandoned); });
  check_refused<Connect>("rails", [](Connect& m) { m.counts.rails = 0; });
  check_refused<Connect>("rails", [](Connect& m) { m.counts.rails = kMaxRails + 1; });
  check_refused<Connect>("qps", [](Connect& m) { m.counts.qps_per_rail = 0; });
  check_refused<Connect>("qps", [](Connect& m) { m.counts.qps_per_rail = kMaxPaths + 1; });
  check_refused<Resume>("no version", [](Resume& m) { m.versions = {.least = 0, .most = 1}; });
  check_refused<Resume>("other version", [](Resume& m) { m.versions = {.least = 3, .most = 4}; });
  check_refused<Connect>("window wraps", [](Connect& m) { m.window.address = UINT64_MAX - 4095; });
}

TEMPLATE_TEST_CASE("wire message: an offer to resume names one address at least, and ports",
                   "[unit][wire]", Hello, HelloAck) {
  const auto check = [](const char* what, const std::function<void(ResumeOffer&)>& spoil) {
    check_refused<TestType>(what, [&](TestType& m) { spoil(*m.resume); });
  };
  check("no address", [](ResumeOffer& o) { o.addresses.clear(); });
  check("too many", [](ResumeOffer& o) {
    o.addresses.assign(kMaxResumeAddresses + 1, sample_resume_offer().addresses[0]);
  });
  check("no port", [](ResumeOffer& o) { o.addresses[1].port = 0; });
  check("kind", [](ResumeOffer& o) { o.addresses[0].kind = beyond(AddressKind::kIpv6); });
  TestType without = sample<TestType>();
  without.resume.reset();
  CHECK_FALSE(is_refused(without));
}

TEST_CASE("wire message: the longest introductions fit into what strangers may send",
          "[unit][wire]") {
  Hello hello = sample<Hello>();
  hello.host.assign(kMaxNameBytes, 'x');
  hello.resume->addresses.assign(kMaxResumeAddresses, sample_resume_offer().addresses[1]);
  CHECK(body_of(hello).size() <= kMaxHelloBytes);
  CHECK(body_of(sample<Resume>()).size() <= kMaxHelloBytes);
}

TEMPLATE_TEST_CASE("wire message: a list of paths has one at least, and none twice", "[unit][wire]",
                   Connect, Accept, Ready) {
  const auto check = [](const char* what, const std::function<void(TestType&)>& spoil) {
    check_refused<TestType>(what, spoil);
  };
  check("no path", [](TestType& m) {
    m.paths.clear();
    if (std::is_same_v<TestType, Connect>) m.missing.clear();  // it may only list what is missing
  });
  check("too many", [](TestType& m) { m.paths.resize(kMaxPaths + 1); });
  check("one twice", [](TestType& m) { m.paths.push_back(m.paths.front()); });
  check("one missing twice", [](TestType& m) { m.missing.push_back(m.missing.front()); });
  check("missing and not", [](TestType& m) { m.missing.front().number = 2; });
  check("a number too large", [](TestType& m) { m.missing.front().number = kMaxPaths; });
}

TEST_CASE("wire message: a report that contradicts itself is an error", "[unit][wire]") {
  const auto check = [](const char* what, const std::function<void(ReceiverReport&)>& spoil) {
    check_refused<Fenced>(what, [&](Fenced& m) { spoil(std::get<ReceiverReport>(m.report)); });
  };
  check_refused<Fenced>("path", [](Fenced& m) { m.path = kMaxPaths; });
  check_refused<Fenced>("a receiver has finished", [](Fenced& m) { m.finished.add(1); });
  check("no chunk", [](ReceiverReport& r) { r.partial[0].arrived = 0; });
  check("one twice", [](ReceiverReport& r) { r.partial[1].position = r.partial[0].position; });
  check("whole and in part", [](ReceiverReport& r) { r.whole.add(r.partial[0].position); });
  check("not granted yet", [](ReceiverReport& r) { r.partial[0].position = r.next; });
}

TEST_CASE("wire message: a path that cannot be made anew is an error", "[unit][wire]") {
  check_refused<OfferPath>("path", [](OfferPath& m) { m.path = kMaxPaths; });
  check_refused<OfferPath>("offer", [](OfferPath& m) { m.offer.qp.port = 0; });
  check_refused<AnswerPath>("path", [](AnswerPath& m) { m.path = kMaxPaths; });
  check_refused<AnswerPath>("answer", [](AnswerPath& m) { m.answer.mtu = 0; });
  check_refused<AnswerPath>("a line after the last",
                            [](AnswerPath& m) { m.line_keys->keys[0].position = 5; });
  check_refused<AnswerPath>("a line twice",
                            [](AnswerPath& m) { m.line_keys->keys[0].position = 0xffff'ffff; });
  check_refused<PathNote>("path", [](PathNote& m) { m.path = kMaxPaths; });
  check_refused<PathNote>("news", [](PathNote& m) { m.news = beyond(PathNews::kWaits); });
  check_refused<PathNote>("position", [](PathNote& m) { m.news = PathNews::kReady; });
}

TEST_CASE("wire message: what a sender has reported is decoded", "[unit][wire]") {
  const Fenced message = sample_sender_report();
  const auto decoded = decode<Fenced>(body_of(message));
  REQUIRE(decoded);
  CHECK(*decoded == message);
}

TEST_CASE("wire message: an offer's number out of its range is an error", "[unit][wire]") {
  check_offer("number", [](PathOffer& p) { p.number = kMaxPaths; });
  check_offer("port", [](PathOffer& p) { p.qp.port = 0; });
  check_offer("qpn", [](PathOffer& p) { p.qp.qpn = 1U << 24; });
  check_offer("psn", [](PathOffer& p) { p.qp.psn = 1U << 24; });
  check_offer("link layer", [](PathOffer& p) { p.link_layer = beyond(LinkLayer::kEthernet); });
  check_offer("transport", [](PathOffer& p) { p.transport = beyond(Transport::kIwarp); });
  check_offer("mtu 0", [](PathOffer& p) { p.mtu = 0; });
  check_offer("mtu 6", [](PathOffer& p) { p.mtu = 6; });
  check_offer("sl", [](PathOffer& p) { p.settings.service_level = 16; });
  check_offer("sl -2", [](PathOffer& p) { p.settings.service_level = -2; });
  check_offer("tc", [](PathOffer& p) { p.settings.traffic_class = 256; });
  check_offer("pkey", [](PathOffer& p) { p.settings.pkey_index = 65536; });
  check_offer("gid", [](PathOffer& p) { p.settings.gid_index = -2; });
  check_offer("roce", [](PathOffer& p) { p.settings.roce_version = 3; });
  check_offer("family", [](PathOffer& p) { p.settings.family = beyond(AddressFamily::kIpv6); });
  check_offer("prefix", [](PathOffer& p) { p.settings.gid_range->prefix = 129; });
  check_offer("gid type", [](PathOffer& p) { p.gids[0].type = beyond(GidType::kRoceV2); });
  check_offer("pkeys", [](PathOffer& p) { p.pkeys.resize(kMaxPkeys + 1); });
  check_offer("gids", [](PathOffer& p) { p.gids.resize(kMaxGids + 1); });
  check_offer("cm support", [](PathOffer& p) { p.cm.support = beyond(CmSupport::kRequested); });
  check_offer("cm addresses", [](PathOffer& p) { p.cm.addresses.resize(kMaxCmAddresses + 1); });
  check_offer("cm address",
              [](PathOffer& p) { p.cm.addresses[0].kind = beyond(AddressKind::kIpv6); });
}

TEST_CASE("wire message: an answer's number out of its range is an error", "[unit][wire]") {
  check_answer("number", [](PathAnswer& p) { p.number = kMaxPaths; });
  check_answer("port", [](PathAnswer& p) { p.qp.port = 0; });
  check_answer("mtu 0", [](PathAnswer& p) { p.mtu = 0; });
  check_answer("mtu 6", [](PathAnswer& p) { p.mtu = 6; });
  check_answer("sl", [](PathAnswer& p) { p.service_level = 16; });
  check_answer("flow label", [](PathAnswer& p) { p.flow_label = 1U << 20; });
  check_answer("notify", [](PathAnswer& p) { p.notify = beyond(Notify::kNotice); });
  check_answer("cm port", [](PathAnswer& p) { p.cm->address.port = 0; });
  check_answer("cm address",
               [](PathAnswer& p) { p.cm->address.kind = beyond(AddressKind::kIpv6); });
}

TEST_CASE("wire message: a text is cut when it is long, and has no unprintable characters",
          "[unit][wire]") {
  Reject message = sample<Reject>();
  message.text = "bell\a and\nline" + std::string(1000, 'x');
  const auto decoded = decode<Reject>(body_of(message));
  REQUIRE(decoded);
  CHECK(decoded->text.size() == kMaxTextBytes);
  CHECK(decoded->text.starts_with("bell? and?line"));
}

TEST_CASE("wire message: the versions in a HELLO of another version can be read", "[unit][wire]") {
  Hello message = sample<Hello>();
  message.versions = {.least = 3, .most = 4};
  Bytes body = body_of(message);
  body.resize(20);  // the rest of another version's HELLO is unknown
  const auto versions = hello_versions(body);
  REQUIRE(versions);
  CHECK(*versions == VersionRange{.least = 3, .most = 4});
  REQUIRE_FALSE(decode<Hello>(body));
  CHECK(decode<Hello>(body).error().code == Errc::kUnsupported);
  body[0] ^= std::byte{1};  // the magic
  CHECK_FALSE(hello_versions(body));
  CHECK_FALSE(decode<Hello>(body));
}

TEST_CASE("wire frame: frames come out whole, however the stream is cut", "[unit][wire]") {
  Bytes stream;
  for (const Bytes& frame : {encode(sample<Goodbye>()), encode(sample<Connect>()),
                             make_frame(MessageType::kReady, {}), encode(sample<Ready>())}) {
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  const std::size_t step = GENERATE(1U, 2U, 7U, 64U, 1000U, 100'000U);
  FrameSplitter splitter;
  std::vector<MessageType> types;
  for (std::size_t at = 0; at < stream.size(); at += step) {
    splitter.append(ByteView(stream).subspan(at, std::min(step, stream.size() - at)));
    for (;;) {
      const auto frame = splitter.next();
      REQUIRE(frame);
      if (!*frame) break;
      types.push_back((*frame)->type);
    }
  }
  CHECK(types == std::vector{MessageType::kGoodbye, MessageType::kConnect, MessageType::kReady,
                             MessageType::kReady});
  CHECK(splitter.pending() == 0);
}

TEST_CASE("wire frame: an invalid header is noticed before its body arrives", "[unit][wire]") {
  const auto is_error = [](std::uint32_t size, std::uint16_t type, std::uint16_t zero,
                           std::size_t most) {
    Writer writer;
    writer(size, type, zero);
    FrameSplitter splitter;
    splitter.append(writer.bytes());
    return !splitter.next(most);
  };
  CHECK_FALSE(is_error(512, 1, 0, 512));
  CHECK(is_error(513, 1, 0, 512));
  CHECK_FALSE(is_error(kMaxBodyBytes, 8, 0, kMaxBodyBytes));
  CHECK(is_error(kMaxBodyBytes + 1, 8, 0, kMaxBodyBytes));
  CHECK(is_error(4, 0, 0, 512));
  CHECK(is_error(4, static_cast<std::uint16_t>(kLastType) + 1, 0, 512));
  CHECK(is_error(4, 1, 1, 512));
}

TEST_CASE("wire version: two ranges have the newest in common, or nothing", "[unit][wire]") {
  CHECK(common_version({1, 3}, {2, 5}) == 3);
  CHECK(common_version({2, 5}, {1, 3}) == 3);
  CHECK(common_version({1, 1}, {1, 1}) == 1);
  CHECK_FALSE(common_version({1, 1}, {2, 3}));
  CHECK_FALSE(common_version({2, 3}, {1, 1}));
}

TEST_CASE("wire version: a refusal names the builds of both ends", "[unit][wire]") {
  const std::string ours = std::string("this host version 2 (Beeline ") + kBuild +
                           "): use the same build of Beeline on all hosts";
  CHECK(version_mismatch({1, 1}, kOurVersions) ==
        "the peer speaks version 1 of the protocol (Beeline 0.1), " + ours);
  CHECK(version_mismatch({3, 4}, kOurVersions) ==
        "the peer speaks versions 3-4 of the protocol (a newer Beeline), " + ours);
}
