// SPDX-License-Identifier: Apache-2.0
//
// The bytes of offers and answers.
#include "plugin/wire/message_path.h"

namespace beeline::wire {
namespace {

constexpr std::uint32_t kMax24Bits = 0xff'ffff;
constexpr std::uint32_t kMaxFlowLabel = 0xf'ffff;
constexpr std::size_t kMaxDeviceName = 64;  // IBV_SYSFS_NAME_MAX

void encode(const QpFacts& qp, Writer& writer) {
  writer.text(qp.device, kMaxDeviceName);
  writer.number(qp.port);
  writer.number(qp.lid);
  writer.number(qp.qpn);
  writer.number(qp.psn);
  writer.number(qp.max_rd_atomic);
  writer.flag(qp.ece.has_value());
  if (!qp.ece) return;
  writer.number(qp.ece->vendor);
  writer.number(qp.ece->options);
  writer.number(qp.ece->mask);
}

QpFacts decode_qp(Reader& reader) {
  QpFacts qp;
  qp.device = reader.text(kMaxDeviceName);
  qp.port = reader.within<std::uint8_t>(1, UINT8_MAX);
  qp.lid = reader.number<std::uint16_t>();
  qp.qpn = reader.within<std::uint32_t>(0, kMax24Bits);
  qp.psn = reader.within<std::uint32_t>(0, kMax24Bits);
  qp.max_rd_atomic = reader.number<std::uint8_t>();
  if (reader.flag()) {
    Ece& ece = qp.ece.emplace();
    ece.vendor = reader.number<std::uint32_t>();
    ece.options = reader.number<std::uint32_t>();
    ece.mask = reader.number<std::uint32_t>();
  }
  return qp;
}

void encode(const PortSettings& settings, Writer& writer) {
  writer.number(settings.service_level);
  writer.number(settings.traffic_class);
  writer.number(settings.pkey_index);
  writer.number(settings.gid_index);
  writer.number(settings.roce_version);
  writer.choice(settings.family);
  writer.flag(settings.gid_range.has_value());
  if (!settings.gid_range) return;
  writer.array(settings.gid_range->base);
  writer.number(settings.gid_range->prefix);
}

PortSettings decode_settings(Reader& reader) {
  PortSettings settings;
  settings.service_level = reader.within<std::int16_t>(-1, 15);
  settings.traffic_class = reader.within<std::int16_t>(-1, 255);
  settings.pkey_index = reader.within<std::int32_t>(-1, UINT16_MAX);
  settings.gid_index = reader.within<std::int32_t>(-1, UINT16_MAX);
  settings.roce_version = reader.within<std::uint8_t>(0, 2);
  settings.family = reader.choice(AddressFamily::kIpv6);
  if (reader.flag()) {
    GidRange& range = settings.gid_range.emplace();
    range.base = reader.array<16>();
    range.prefix = reader.within<std::uint8_t>(0, 128);
  }
  return settings;
}

void encode(const GidEntry& entry, Writer& writer) {
  writer.number(entry.index);
  writer.choice(entry.type);
  writer.array(entry.gid);
}

GidEntry decode_gid(Reader& reader) {
  GidEntry entry;
  entry.index = reader.number<std::uint16_t>();
  entry.type = reader.choice(GidType::kRoceV2);
  entry.gid = reader.array<16>();
  return entry;
}

void encode(const CmOffer& cm, Writer& writer) {
  writer.choice(cm.support);
  writer.count(cm.addresses.size());
  for (const SocketAddress& address : cm.addresses) encode_host(address, writer);
}

CmOffer decode_cm_offer(Reader& reader) {
  CmOffer cm;
  cm.support = reader.choice(CmSupport::kRequested);
  cm.addresses.resize(reader.count(kMaxCmAddresses));
  for (SocketAddress& address : cm.addresses) address = decode_host(reader);
  return cm;
}

void encode(const CmDestination& cm, Writer& writer) {
  encode_host(cm.address, writer);
  writer.number(cm.address.port);
  writer.array(cm.cookie);
}

CmDestination decode_cm_destination(Reader& reader) {
  CmDestination cm;
  cm.address = decode_host(reader);
  cm.address.port = reader.within<std::uint16_t>(1, UINT16_MAX);
  cm.cookie = reader.array<16>();
  return cm;
}

}  // namespace

void encode_host(const SocketAddress& address, Writer& writer) {
  writer.choice(address.kind);
  writer.array(address.bytes);
  writer.number(address.scope);
}

SocketAddress decode_host(Reader& reader) {
  SocketAddress address;
  address.kind = reader.choice(AddressKind::kIpv6);
  address.bytes = reader.array<16>();
  address.scope = reader.number<std::uint32_t>();
  return address;
}

std::uint8_t decode_path_number(Reader& reader) {
  return reader.within<std::uint8_t>(0, kMaxPaths - 1);
}

void encode(const PathOffer& offer, Writer& writer) {
  writer.number(offer.number);
  encode(offer.qp, writer);
  writer.choice(offer.link_layer);
  writer.choice(offer.transport);
  writer.number(offer.mtu);
  writer.number(offer.speed_mbps);
  writer.flag(offer.immediate);
  writer.flag(offer.adaptive_routing);
  encode(offer.settings, writer);
  writer.count(offer.pkeys.size());
  for (const std::uint16_t pkey : offer.pkeys) writer.number(pkey);
  writer.count(offer.gids.size());
  for (const GidEntry& entry : offer.gids) encode(entry, writer);
  encode(offer.cm, writer);
}

PathOffer decode_offer(Reader& reader) {
  PathOffer offer;
  offer.number = decode_path_number(reader);
  offer.qp = decode_qp(reader);
  offer.link_layer = reader.choice(LinkLayer::kEthernet);
  offer.transport = reader.choice(Transport::kIwarp);
  offer.mtu = reader.within<std::uint8_t>(1, 5);
  offer.speed_mbps = reader.number<std::uint32_t>();
  offer.immediate = reader.flag();
  offer.adaptive_routing = reader.flag();
  offer.settings = decode_settings(reader);
  offer.pkeys.resize(reader.count(kMaxPkeys));
  for (std::uint16_t& pkey : offer.pkeys) pkey = reader.number<std::uint16_t>();
  offer.gids.resize(reader.count(kMaxGids));
  for (GidEntry& entry : offer.gids) entry = decode_gid(reader);
  offer.cm = decode_cm_offer(reader);
  return offer;
}

void encode(const PathAnswer& answer, Writer& writer) {
  writer.number(answer.number);
  encode(answer.qp, writer);
  writer.number(answer.speed_mbps);
  writer.array(answer.gid);
  writer.number(answer.gid_index);
  writer.number(answer.pkey_index);
  writer.number(answer.mtu);
  writer.number(answer.service_level);
  writer.number(answer.traffic_class);
  writer.flag(answer.is_global);
  writer.number(answer.flow_label);
  writer.choice(answer.notify);
  writer.flag(answer.cm.has_value());
  if (answer.cm) encode(*answer.cm, writer);
}

PathAnswer decode_answer(Reader& reader) {
  PathAnswer answer;
  answer.number = decode_path_number(reader);
  answer.qp = decode_qp(reader);
  answer.speed_mbps = reader.number<std::uint32_t>();
  answer.gid = reader.array<16>();
  answer.gid_index = reader.number<std::uint8_t>();
  answer.pkey_index = reader.number<std::uint16_t>();
  answer.mtu = reader.within<std::uint8_t>(1, 5);
  answer.service_level = reader.within<std::uint8_t>(0, 15);
  answer.traffic_class = reader.number<std::uint8_t>();
  answer.is_global = reader.flag();
  answer.flow_label = reader.within<std::uint32_t>(0, kMaxFlowLabel);
  answer.notify = reader.choice(Notify::kNotice);
  if (reader.flag()) answer.cm = decode_cm_destination(reader);
  return answer;
}

void encode(const MissingPath& path, Writer& writer) {
  writer.number(path.number);
  writer.text(path.why, kMaxWhyBytes);
}

MissingPath decode_missing(Reader& reader) {
  MissingPath path;
  path.number = decode_path_number(reader);
  path.why = reader.text(kMaxWhyBytes);
  return path;
}

}  // namespace beeline::wire
