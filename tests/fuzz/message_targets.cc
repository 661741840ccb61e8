// SPDX-License-Identifier: Apache-2.0
//
// The messages of the control channel. A message that can be decoded has all properties on which
// its readers rely, fits into a frame, and is the same after it was encoded and decoded again.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "tests/fuzz/wire_targets.h"
#include "tests/support/wire_samples.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::wire;

constexpr std::uint32_t kMax24Bits = 0xff'ffff;

void hold_text(const std::string& text, std::size_t most) {
  hold(text.size() <= most, "a text is no longer than it may be");
  hold(std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; }),
       "a text can be printed");
}

void hold_versions(VersionRange versions) {
  hold(versions.least >= 1 && versions.least <= versions.most, "versions are a range");
}

void hold_window(const Window& window) {
  hold(window.address + window.length >= window.address, "a window does not wrap around");
}

void hold_qp(const QpFacts& qp) {
  hold_text(qp.device, 64);
  hold(qp.port != 0, "ports are counted from 1");
  hold(qp.qpn <= kMax24Bits && qp.psn <= kMax24Bits, "numbers of 24 bits");
}

void hold_address(const SocketAddress& address) {
  hold(address.kind <= AddressKind::kIpv6, "a known kind of address");
}

void hold_path(const PathOffer& offer) {
  hold_qp(offer.qp);
  hold(offer.link_layer <= LinkLayer::kEthernet, "a known link layer");
  hold(offer.transport <= Transport::kIwarp, "a known transport");
  hold(offer.mtu >= 1 && offer.mtu <= 5, "an MTU that verbs know");
  const PortSettings& settings = offer.settings;
  hold(settings.service_level >= -1 && settings.service_level <= 15, "a service level, or none");
  hold(settings.traffic_class >= -1 && settings.traffic_class <= 255, "a traffic class, or none");
  hold(settings.pkey_index >= -1 && settings.pkey_index <= UINT16_MAX, "a pkey's index, or none");
  hold(settings.gid_index >= -1 && settings.gid_index <= UINT16_MAX, "a GID's index, or none");
  hold(settings.roce_version <= 2 && settings.family <= AddressFamily::kIpv6,
       "a kind of GID, or any");
  hold(!settings.gid_range || settings.gid_range->prefix <= 128,
       "a prefix is no longer than a GID");
  hold(offer.pkeys.size() <= kMaxPkeys && offer.gids.size() <= kMaxGids, "tables have an end");
  for (const GidEntry& entry : offer.gids) {
    hold(entry.type <= GidType::kRoceV2, "a known type of GID");
  }
  hold(offer.cm.support <= CmSupport::kRequested, "a known kind of support");
  hold(offer.cm.addresses.size() <= kMaxCmAddresses, "few addresses");
  for (const SocketAddress& address : offer.cm.addresses) hold_address(address);
}

void hold_path(const PathAnswer& answer) {
  hold_qp(answer.qp);
  hold(answer.mtu >= 1 && answer.mtu <= 5, "an MTU that verbs know");
  hold(answer.service_level <= 15 && answer.flow_label <= 0xf'ffff, "fields of a header");
  hold(answer.notify <= Notify::kNotice, "a known way to notify");
  if (!answer.cm) return;
  hold_address(answer.cm->address);
  hold(answer.cm->address.port != 0, "a port that can be dialed");
}

std::uint8_t number_of(const PathOffer& path) { return path.number; }
std::uint8_t number_of(const PathAnswer& path) { return path.number; }
std::uint8_t number_of(std::uint8_t path) { return path; }

void hold_path(std::uint8_t) {}

// Of CONNECT, ACCEPT and READY. A CONNECT may lack all paths: its sender has given up.
template <class Message>
void hold_paths(const Message& message, bool may_lack_all = false) {
  std::set<std::uint8_t> numbers;
  for (const auto& path : message.paths) {
    hold_path(path);
    numbers.insert(number_of(path));
  }
  for (const MissingPath& path : message.missing) {
    hold_text(path.why, kMaxWhyBytes);
    numbers.insert(path.number);
  }
  hold(!message.paths.empty() || (may_lack_all && !message.missing.empty()), "one path at least");
  hold(numbers.size() == message.paths.size() + message.missing.size(), "no path twice");
  hold(*numbers.rbegin() < kMaxPaths, "not too many paths");
}

void hold_resume(const std::optional<ResumeOffer>& offer) {
  if (!offer) return;
  hold(!offer->addresses.empty() && offer->addresses.size() <= kMaxResumeAddresses,
       "an address, and not too many");
  for (const SocketAddress& address : offer->addresses) {
    hold_address(address);
    hold(address.port != 0, "a port that can be dialed");
  }
}

void hold_message(const Hello& message) {
  hold_versions(message.versions);
  hold(common_version(message.versions, kOurVersions).has_value(), "a version that we speak");
  hold_text(message.host, kMaxNameBytes);
  hold_resume(message.resume);
}
void hold_message(const HelloAck& message) {
  hold(message.version >= kOurVersions.least && message.version <= kOurVersions.most,
       "a version that we speak");
  hold_text(message.host, kMaxNameBytes);
  hold_resume(message.resume);
}
void hold_message(const Refuse& message) {
  hold_versions(message.versions);
  hold(message.code <= RefuseCode::kUnknownChannel, "a known reason");
  hold_text(message.text, kMaxTextBytes);
  hold(!version_mismatch(message.versions, kOurVersions).empty(), "a sentence on versions");
}
void hold_message(const Connect& message) {
  hold(message.counts.rails >= 1 && message.counts.rails <= kMaxRails, "a rail, and not too many");
  hold(message.counts.qps_per_rail >= 1 && message.counts.qps_per_rail <= kMaxPaths,
       "a queue pair, and not too many");
  hold_window(message.window);
  hold_paths(message, true);
}
void hold_message(const Accept& message) {
  hold_window(message.window);
  hold_paths(message);
}
void hold_message(const Reject& message) {
  hold(message.code <= RejectCode::kAbandoned, "a known reason");
  hold_text(message.text, kMaxTextBytes);
}
void hold_message(const Ready& message) { hold_paths(message); }
void hold_message(const Goodbye&) {}
void hold_message(const Resume& message) {
  hold_versions(message.versions);
  hold(common_version(message.versions, kOurVersions).has_value(), "a version that we speak");
}
void hold_message(const ResumeAck&) {}
void hold_message(const StillOpen&) {}
void hold_message(const Fenced& message) {
  hold(message.path < kMaxPaths, "the number of a path");
  const auto* const report = std::get_if<ReceiverReport>(&message.report);
  hold(report == nullptr || is_consistent(*report), "no line has arrived twice");
  hold(report == nullptr || message.finished.empty(), "only a sender finishes lines");
}
void hold_message(const OfferPath& message) {
  hold(message.path < kMaxPaths, "the number of a path");
  hold_path(message.offer);
}
void hold_message(const AnswerPath& message) {
  hold(message.path < kMaxPaths, "the number of a path");
  hold_path(message.answer);
  hold(!message.line_keys || is_consistent(*message.line_keys), "each line has one key");
}
void hold_message(const PathNote& message) {
  hold(message.path < kMaxPaths, "the number of a path");
  hold(message.news <= PathNews::kWaits, "known news");
}

void hold_error(const Error& error) {
  hold(error.code == Errc::kProtocol || error.code == Errc::kUnsupported, "an error of the peer's");
}

template <class Message>
bool take(ByteView bytes) {
  const Result<Message> first = decode<Message>(bytes);
  if (!first) {
    hold_error(first.error());
    return false;
  }
  hold_message(*first);
  const Bytes frame = encode(*first);
  hold(frame.size() == kFrameHeadBytes + bytes.size(), "nothing is left over or added");
  FrameSplitter splitter;
  splitter.append(frame);
  const auto cut = splitter.next();
  hold(cut && *cut && (*cut)->type == Message::kType, "what decodes fits into a frame");
  const Result<Message> second = decode<Message>((*cut)->body);
  hold(second && *second == *first, "the same after another way through");
  return true;
}

// The versions of a HELLO or RESUME can be read whatever follows them.
template <class Message>
bool take_versioned(ByteView bytes) {
  const Result<VersionRange> versions = hello_versions(bytes);
  if (versions) hold_versions(*versions);
  const bool is_good = take<Message>(bytes);
  hold(!is_good || versions, "an introduction has versions");
  return is_good;
}

template <class Message>
Bytes body_of(const Message& message) {
  const Bytes frame = encode(message);
  return Bytes(frame.begin() + kFrameHeadBytes, frame.end());
}

template <class Message>
std::vector<Bytes> seeds() {
  return {body_of(test::sample<Message>())};
}

// A sample, one without an offer to resume, and one of maximum size.
template <class Message>
std::vector<Bytes> seeds_of_introduction() {
  Message least = test::sample<Message>();
  least.resume.reset();
  Message most = test::sample<Message>();
  most.resume->addresses.assign(kMaxResumeAddresses, test::sample_resume_offer().addresses[1]);
  return {body_of(test::sample<Message>()), body_of(least), body_of(most)};
}

// Seeds: a sample, one without any optional part, and one of maximum size.
template <>
std::vector<Bytes> seeds<Connect>() {
  Connect least = test::sample<Connect>();
  least.paths.assign(1, PathOffer{});
  least.missing.clear();
  Connect most = test::sample<Connect>();
  most.paths = test::numbered(test::sample_offer(), {0, 1, 2, 3, 4, 5, 6, 7});
  most.missing.clear();
  for (PathOffer& offer : most.paths) {
    offer.pkeys.assign(kMaxPkeys, 0xffff);
    offer.gids.assign(kMaxGids, test::sample_offer().gids[1]);
    offer.cm.addresses.assign(kMaxCmAddresses, test::sample_offer().cm.addresses[1]);
  }
  return {body_of(test::sample<Connect>()), body_of(least), body_of(most)};
}

template <>
std::vector<Bytes> seeds<Accept>() {
  Accept least = test::sample<Accept>();
  least.paths.assign(1, PathAnswer{});
  least.missing.clear();
  Accept most = test::sample<Accept>();
  most.paths = test::numbered(test::sample_answer(), {0, 1, 2, 3, 4, 5, 6, 7});
  most.missing.clear();
  return {body_of(test::sample<Accept>()), body_of(least), body_of(most)};
}

template <>
std::vector<Bytes> seeds<Ready>() {
  const Ready least = {.comm = 1, .paths = {0}};
  Ready most = {.comm = 1, .paths = {7}};
  const std::string why(kMaxWhyBytes, 'x');
  most.missing = test::numbered(MissingPath{.number = 0, .why = why}, {0, 1, 2, 3, 4, 5, 6});
  return {body_of(test::sample<Ready>()), body_of(least), body_of(most)};
}

// Seeds: of either end, and one of maximum size.
template <>
std::vector<Bytes> seeds<Fenced>() {
  Fenced most = test::sample<Fenced>();
  auto& report = std::get<ReceiverReport>(most.report);
  report.whole = {};
  report.partial_count = ReceiverReport::kMostPartial;
  for (std::uint32_t i = 0; i < report.partial_count; ++i) {
    report.partial[i] = {.position = report.next - 1 - i, .arrived = i + 1};
  }
  return {body_of(test::sample<Fenced>()), body_of(test::sample_sender_report()), body_of(most)};
}

constexpr std::array<Target, 15> kMessageTargets = {{
    {"hello", take_versioned<Hello>, seeds_of_introduction<Hello>},
    {"hello_ack", take<HelloAck>, seeds_of_introduction<HelloAck>},
    {"refuse", take<Refuse>, seeds<Refuse>},
    {"connect", take<Connect>, seeds<Connect>},
    {"accept", take<Accept>, seeds<Accept>},
    {"ready", take<Ready>, seeds<Ready>},
    {"reject", take<Reject>, seeds<Reject>},
    {"goodbye", take<Goodbye>, seeds<Goodbye>},
    {"resume", take_versioned<Resume>, seeds<Resume>},
    {"resume_ack", take<ResumeAck>, seeds<ResumeAck>},
    {"still_open", take<StillOpen>, seeds<StillOpen>},
    {"fenced", take<Fenced>, seeds<Fenced>},
    {"offer_path", take<OfferPath>, seeds<OfferPath>},
    {"answer_path", take<AnswerPath>, seeds<AnswerPath>},
    {"path_note", take<PathNote>, seeds<PathNote>},
}};

}  // namespace

std::span<const Target> message_targets() { return kMessageTargets; }

}  // namespace beeline::fuzz
