// SPDX-License-Identifier: Apache-2.0
//
// One message of each type, in which no field has its default value, and lines of credit.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "plugin/wire/credit.h"
#include "plugin/wire/message.h"
#include "plugin/wire/message_remake.h"

namespace beeline::wire {

// Sets the sum of a line that was filled as a struct.
inline void seal(CreditLine& line, Rails rails) noexcept {
  line.sum = sum_of(std::bit_cast<LineWords>(line), rails);
}

}  // namespace beeline::wire

namespace beeline::test {

template <std::size_t N>
std::array<std::uint8_t, N> counting(std::uint8_t first) {
  std::array<std::uint8_t, N> bytes{};
  for (std::uint8_t& byte : bytes) byte = first++;
  return bytes;
}

inline wire::Handle sample_handle() {
  return {.versions = wire::kOurVersions,
          .process = counting<16>(1),
          .listener = 77,
          .token = counting<16>(100),
          .address = {.kind = wire::AddressKind::kIpv6,
                      .port = 40312,
                      .bytes = counting<16>(30),
                      .scope = 3},
          .counts = {.rails = 8, .qps_per_rail = 2},
          .host = "node17",
          .device = "mlx5_0:1"};
}

inline wire::QpFacts sample_qp() {
  return {.device = "mlx5_3",
          .port = 2,
          .lid = 0x1234,
          .qpn = 0xfedcba,
          .psn = 0xabcdef,
          .max_rd_atomic = 16,
          .ece = wire::Ece{.vendor = 0x15b3, .options = 7, .mask = 9}};
}

inline wire::Window sample_window() {
  wire::Window window{.address = 0x7fff'0000'1000, .length = 16384};
  for (std::uint32_t i = 0; i < wire::kMaxRails; ++i) window.rkeys[i] = 0x1000 + i;
  return window;
}

inline wire::PathOffer sample_offer() {
  wire::PathOffer offer;
  offer.number = 3;
  offer.qp = sample_qp();
  offer.link_layer = wire::LinkLayer::kInfiniBand;
  offer.transport = wire::Transport::kInfiniBand;
  offer.mtu = 5;
  offer.speed_mbps = 400'000;
  offer.immediate = false;
  offer.adaptive_routing = true;
  offer.settings = {.service_level = 3,
                    .traffic_class = 106,
                    .pkey_index = 1,
                    .gid_index = 4,
                    .roce_version = 2,
                    .family = wire::AddressFamily::kIpv6,
                    .gid_range = wire::GidRange{.base = counting<16>(9), .prefix = 64}};
  offer.pkeys = {0xffff, 0x8001};
  offer.gids = {{.index = 1, .type = wire::GidType::kRoceV1, .gid = counting<16>(50)},
                {.index = 3, .type = wire::GidType::kRoceV2, .gid = counting<16>(70)}};
  offer.cm = {
      .support = wire::CmSupport::kRequested,
      .addresses = {{.bytes = counting<16>(10)},
                    {.kind = wire::AddressKind::kIpv6, .bytes = counting<16>(40), .scope = 5}}};
  return offer;
}

inline wire::PathAnswer sample_answer() {
  wire::PathAnswer answer;
  answer.number = 2;
  answer.speed_mbps = 200'000;
  answer.qp = sample_qp();
  answer.gid = counting<16>(5);
  answer.gid_index = 3;
  answer.pkey_index = 1;
  answer.mtu = 4;
  answer.service_level = 3;
  answer.traffic_class = 106;
  answer.is_global = false;
  answer.flow_label = 0xabcde;
  answer.notify = wire::Notify::kNoticeAfterRouted;
  answer.cm = wire::CmDestination{.address = {.kind = wire::AddressKind::kIpv6,
                                              .port = 40312,
                                              .bytes = counting<16>(30),
                                              .scope = 3},
                                  .cookie = counting<16>(60)};
  return answer;
}

inline wire::MissingPath sample_missing() {
  return {.number = 6, .why = "node17 mlx5_6 port 1: the port is down"};
}

inline wire::ResumeOffer sample_resume_offer() {
  const wire::SocketAddress v4 = {.port = 4711, .bytes = {10, 0, 0, 7}};
  const wire::SocketAddress v6 = {
      .kind = wire::AddressKind::kIpv6, .port = 4712, .bytes = {0xfe, 0x80, 0, 1}, .scope = 2};
  return {.token = counting<16>(50), .addresses = {v4, v6}};
}

// Paths with these numbers, which are otherwise alike.
template <class Path>
std::vector<Path> numbered(const Path& path, std::initializer_list<std::uint8_t> numbers) {
  std::vector<Path> paths(numbers.size(), path);
  std::size_t i = 0;
  for (const std::uint8_t number : numbers) paths[i++].number = number;
  return paths;
}

template <class Message>
Message sample();

template <>
inline wire::Hello sample<wire::Hello>() {
  return {.versions = wire::kOurVersions,
          .process = counting<16>(1),
          .host = "node17",
          .pid = 4711,
          .listener = 77,
          .token = counting<16>(100),
          .resume = sample_resume_offer()};
}
template <>
inline wire::HelloAck sample<wire::HelloAck>() {
  return {.version = wire::kOurVersions.most,
          .process = counting<16>(1),
          .host = "node17",
          .pid = 4711,
          .clock_ns = 0x0123'4567'89ab'cdef,
          .resume = sample_resume_offer()};
}
template <>
inline wire::Refuse sample<wire::Refuse>() {
  return {.code = wire::RefuseCode::kDuplicate,
          .versions = {.least = 2, .most = 3},
          .text = "another goes first"};
}
template <>
inline wire::Connect sample<wire::Connect>() {
  return {.listener = 77,
          .token = counting<16>(100),
          .comm = 12,
          .counts = {.rails = 4, .qps_per_rail = 2},
          .window = sample_window(),
          .paths = numbered(sample_offer(), {2, 5}),
          .missing = {sample_missing()}};
}
template <>
inline wire::Accept sample<wire::Accept>() {
  return {.comm = 12,
          .our_comm = 13,
          .window = sample_window(),
          .paths = {sample_answer()},
          .missing = {sample_missing()}};
}
template <>
inline wire::Ready sample<wire::Ready>() {
  return {.comm = 13, .paths = {2, 7}, .missing = {sample_missing()}};
}
template <>
inline wire::Reject sample<wire::Reject>() {
  return {.comm = 12, .code = wire::RejectCode::kAbandoned, .text = "it was not ready in time"};
}
template <>
inline wire::Goodbye sample<wire::Goodbye>() {
  return {.comm = 12, .settled = 0xffff'fff0};
}
template <>
inline wire::Fenced sample<wire::Fenced>() {
  wire::ReceiverReport report;
  report.next = 0x1'0003;
  for (const std::uint32_t position : {0xfffdU, 0xfffeU, 0x1'0001U}) report.whole.add(position);
  report.partial[0] = {.position = 0xffff, .arrived = 0b1011};
  report.partial[1] = {.position = 0x1'0002, .arrived = std::uint64_t{1} << 63};
  report.partial_count = 2;
  return {.comm = 12,
          .serial = 0xffff'fffe,
          .path = 3,
          .generation = 5,
          .has_peer_report = true,
          .report = report};
}
// FENCED of a sender.
inline wire::Fenced sample_sender_report() {
  wire::Fenced message = sample<wire::Fenced>();
  wire::SenderReport& report = message.report.emplace<wire::SenderReport>();
  report.taken = 0xffff'fff0;
  for (const std::uint32_t position : {0xffff'fff0U, 3U}) report.held.add(position);
  message.finished.add(0xffff'ff01);
  return message;
}
template <>
inline wire::OfferPath sample<wire::OfferPath>() {
  return {.comm = 12,
          .serial = 0x1'0000,
          .path = 3,
          .generation = 6,
          .report = std::get<wire::SenderReport>(sample_sender_report().report),
          .offer = sample_offer(),
          .window_key = 0x8000'0001};
}
template <>
inline wire::AnswerPath sample<wire::AnswerPath>() {
  return {.comm = 12,
          .serial = 1,
          .path = 3,
          .generation = 6,
          .answer = sample_answer(),
          .window_key = 0x8000'0002,
          .line_keys = wire::LineKeys{
              .next = 5,
              .keys = {{.position = 4, .key = 0xffff'ffff}, {.position = 0xffff'ffff, .key = 7}}}};
}
template <>
inline wire::PathNote sample<wire::PathNote>() {
  return {.comm = 12,
          .serial = 9,
          .path = 7,
          .generation = 0xffff'ffff,
          .news = wire::PathNews::kWaits,
          .position = 0x1'0002};
}
template <>
inline wire::Resume sample<wire::Resume>() {
  return {.versions = wire::kOurVersions,
          .process = counting<16>(1),
          .token = counting<16>(50),
          .attempt = 3};
}
template <>
inline wire::ResumeAck sample<wire::ResumeAck>() {
  return {.process = counting<16>(1), .token = counting<16>(50), .attempt = 2};
}
template <>
inline wire::StillOpen sample<wire::StillOpen>() {
  return {.comm = 12, .our_comm = 13};
}

}  // namespace beeline::test
