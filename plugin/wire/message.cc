// SPDX-License-Identifier: Apache-2.0
//
// The bytes of each message. In every version of the protocol, HELLO, RESUME and REFUSE begin with
// the magic and the range of versions.
#include "plugin/wire/message.h"

namespace beeline::wire {
namespace {

void encode_versions(VersionRange versions, Writer& writer) {
  writer.number(kMagic);
  writer.number(versions.least);
  writer.number(versions.most);
}

VersionRange decode_versions(Reader& reader) {
  reader.require(reader.number<std::uint64_t>() == kMagic);
  VersionRange versions;
  versions.least = reader.within<std::uint16_t>(1, UINT16_MAX);
  versions.most = reader.within<std::uint16_t>(versions.least, UINT16_MAX);
  return versions;
}

void encode(const std::optional<ResumeOffer>& offer, Writer& writer) {
  writer.flag(offer.has_value());
  if (!offer) return;
  writer.array(offer->token);
  writer.count(offer->addresses.size());
  for (const SocketAddress& address : offer->addresses) {
    encode_host(address, writer);
    writer.number(address.port);
  }
}

std::optional<ResumeOffer> decode_resume_offer(Reader& reader) {
  if (!reader.flag()) return std::nullopt;
  ResumeOffer offer;
  offer.token = reader.array<16>();
  offer.addresses.resize(reader.count(kMaxResumeAddresses));
  reader.require(!offer.addresses.empty());
  for (SocketAddress& address : offer.addresses) {
    address = decode_host(reader);
    address.port = reader.within<std::uint16_t>(1, UINT16_MAX);
  }
  return offer;
}

// Fails unless the two ends have a version in common.
Status check_versions(ByteView body, const char* what) {
  if (common_version(BL_TRY(hello_versions(body)), kOurVersions)) return {};
  return fail(Errc::kUnsupported, what);
}

void encode(const Window& window, Writer& writer) {
  writer.number(window.address);
  writer.number(window.length);
  for (const std::uint32_t rkey : window.rkeys) writer.number(rkey);
}

Window decode_window(Reader& reader) {
  Window window;
  window.address = reader.number<std::uint64_t>();
  window.length = reader.number<std::uint64_t>();
  reader.require(window.length <= UINT64_MAX - window.address);
  for (std::uint32_t& rkey : window.rkeys) rkey = reader.number<std::uint32_t>();
  return window;
}

void encode(RailCounts counts, Writer& writer) {
  writer.number(counts.rails);
  writer.number(counts.qps_per_rail);
}

RailCounts decode_counts(Reader& reader) {
  RailCounts counts;
  counts.rails = reader.within<std::uint8_t>(1, kMaxRails);
  counts.qps_per_rail = reader.within<std::uint8_t>(1, kMaxPaths);
  return counts;
}

template <class Path>
std::uint8_t number_of(const Path& path) noexcept {
  return path.number;
}
template <>
std::uint8_t number_of<std::uint8_t>(const std::uint8_t& path) noexcept {
  return path;
}

void encode(std::uint8_t number, Writer& writer) { writer.number(number); }

template <class Path>
void encode_list(const std::vector<Path>& paths, Writer& writer) {
  writer.count(paths.size());
  for (const Path& path : paths) encode(path, writer);
}

// `seen` has a bit for each path that the message has named before.
template <class Path>
std::vector<Path> decode_list(Reader& reader, Path (*decode_path)(Reader&), unsigned& seen) {
  std::vector<Path> paths;
  const std::size_t count = reader.count(kMaxPaths);
  for (std::size_t i = 0; i < count && reader.is_good(); ++i) {
    const Path& path = paths.emplace_back(decode_path(reader));
    const unsigned bit = 1U << number_of(path);
    reader.require((seen & bit) == 0);
    seen |= bit;
  }
  return paths;
}

// The two lists of CONNECT, ACCEPT and READY.
template <class Message>
void encode_paths(const Message& message, Writer& writer) {
  encode_list(message.paths, writer);
  encode_list(message.missing, writer);
}

template <class Message, class Path>
void decode_paths(Reader& reader, Path (*decode_path)(Reader&), Message& message) {
  unsigned seen = 0;
  message.paths = decode_list(reader, decode_path, seen);
  reader.require(!message.paths.empty());  // a comm has one path at least
  message.missing = decode_list(reader, decode_missing, seen);
}

template <class Message>
Result<Message> checked(const Reader& reader, Message message, const char* what) {
  if (!reader.is_finished()) return fail(Errc::kProtocol, what);
  return message;
}

}  // namespace

Bytes encode(const Hello& message) {
  Writer writer;
  encode_versions(message.versions, writer);
  writer.array(message.process);
  writer.text(message.host, kMaxNameBytes);
  writer.number(message.pid);
  writer.number(message.listener);
  writer.array(message.token);
  encode(message.resume, writer);
  return make_frame(Hello::kType, writer.bytes());
}

Result<VersionRange> hello_versions(ByteView body) {
  Reader reader(body);
  const VersionRange versions = decode_versions(reader);
  if (!reader.is_good()) return fail(Errc::kProtocol, "read a HELLO: it is not from Beeline");
  return versions;
}

template <>
Result<Hello> decode<Hello>(ByteView body) {
  Hello message;
  BL_TRY(check_versions(body, "read a HELLO: it is from another version of Beeline"));
  Reader reader(body);
  message.versions = decode_versions(reader);
  message.process = reader.array<16>();
  message.host = reader.text(kMaxNameBytes);
  message.pid = reader.number<std::uint32_t>();
  message.listener = reader.number<std::uint32_t>();
  message.token = reader.array<16>();
  message.resume = decode_resume_offer(reader);
  return checked(reader, std::move(message), "read a HELLO");
}

Bytes encode(const HelloAck& message) {
  Writer writer;
  writer.number(message.version);
  writer.array(message.process);
  writer.text(message.host, kMaxNameBytes);
  writer.number(message.pid);
  writer.number(message.clock_ns);
  encode(message.resume, writer);
  return make_frame(HelloAck::kType, writer.bytes());
}

template <>
Result<HelloAck> decode<HelloAck>(ByteView body) {
  Reader reader(body);
  HelloAck message;
  message.version = reader.within(kOurVersions.least, kOurVersions.most);
  message.process = reader.array<16>();
  message.host = reader.text(kMaxNameBytes);
  message.pid = reader.number<std::uint32_t>();
  message.clock_ns = reader.number<std::uint64_t>();
  message.resume = decode_resume_offer(reader);
  return checked(reader, std::move(message), "read a HELLO_ACK");
}

Bytes encode(const Refuse& message) {
  Writer writer;
  encode_versions(message.versions, writer);
  writer.choice(message.code);
  writer.text(message.text, kMaxTextBytes);
  return make_frame(Refuse::kType, writer.bytes());
}

template <>
Result<Refuse> decode<Refuse>(ByteView body) {
  Reader reader(body);
  Refuse message;
  message.versions = decode_versions(reader);
  message.code = reader.choice(RefuseCode::kUnknownChannel);
  message.text = reader.text(kMaxTextBytes);
  return checked(reader, std::move(message), "read a REFUSE");
}

Bytes encode(const Connect& message) {
  Writer writer;
  writer.number(message.listener);
  writer.array(message.token);
  writer.number(message.comm);
  encode(message.counts, writer);
  encode(message.window, writer);
  encode_paths(message, writer);
  return make_frame(Connect::kType, writer.bytes());
}

template <>
Result<Connect> decode<Connect>(ByteView body) {
  Reader reader(body);
  Connect message;
  message.listener = reader.number<std::uint32_t>();
  message.token = reader.array<16>();
  message.comm = reader.number<std::uint32_t>();
  message.counts = decode_counts(reader);
  message.window = decode_window(reader);
  decode_paths(reader, decode_offer, message);
  return checked(reader, std::move(message), "read a CONNECT");
}

Bytes encode(const Accept& message) {
  Writer writer;
  writer.number(message.comm);
  writer.number(message.our_comm);
  encode(message.window, writer);
  encode_paths(message, writer);
  return make_frame(Accept::kType, writer.bytes());
}

template <>
Result<Accept> decode<Accept>(ByteView body) {
  Reader reader(body);
  Accept message;
  message.comm = reader.number<std::uint32_t>();
  message.our_comm = reader.number<std::uint32_t>();
  message.window = decode_window(reader);
  decode_paths(reader, decode_answer, message);
  return checked(reader, std::move(message), "read an ACCEPT");
}

Bytes encode(const Ready& message) {
  Writer writer;
  writer.number(message.comm);
  encode_paths(message, writer);
  return make_frame(Ready::kType, writer.bytes());
}

template <>
Result<Ready> decode<Ready>(ByteView body) {
  Reader reader(body);
  Ready message;
  message.comm = reader.number<std::uint32_t>();
  decode_paths(reader, decode_path_number, message);
  return checked(reader, std::move(message), "read a READY");
}

Bytes encode(const Reject& message) {
  Writer writer;
  writer.number(message.comm);
  writer.choice(message.code);
  writer.text(message.text, kMaxTextBytes);
  return make_frame(Reject::kType, writer.bytes());
}

template <>
Result<Reject> decode<Reject>(ByteView body) {
  Reader reader(body);
  Reject message;
  message.comm = reader.number<std::uint32_t>();
  message.code = reader.choice(RejectCode::kAbandoned);
  message.text = reader.text(kMaxTextBytes);
  return checked(reader, std::move(message), "read a REJECT");
}

Bytes encode(const Goodbye& message) {
  Writer writer;
  writer.number(message.comm);
  writer.number(message.settled);
  return make_frame(Goodbye::kType, writer.bytes());
}

template <>
Result<Goodbye> decode<Goodbye>(ByteView body) {
  Reader reader(body);
  Goodbye message;
  message.comm = reader.number<std::uint32_t>();
  message.settled = reader.number<std::uint32_t>();
  return checked(reader, message, "read a GOODBYE");
}

Bytes encode(const Resume& message) {
  Writer writer;
  encode_versions(message.versions, writer);
  writer.array(message.process);
  writer.array(message.token);
  writer.number(message.attempt);
  return make_frame(Resume::kType, writer.bytes());
}

template <>
Result<Resume> decode<Resume>(ByteView body) {
  Resume message;
  BL_TRY(check_versions(body, "read a RESUME: it is from another version of Beeline"));
  Reader reader(body);
  message.versions = decode_versions(reader);
  message.process = reader.array<16>();
  message.token = reader.array<16>();
  message.attempt = reader.number<std::uint32_t>();
  return checked(reader, message, "read a RESUME");
}

Bytes encode(const ResumeAck& message) {
  Writer writer;
  writer.array(message.process);
  writer.array(message.token);
  writer.number(message.attempt);
  return make_frame(ResumeAck::kType, writer.bytes());
}

template <>
Result<ResumeAck> decode<ResumeAck>(ByteView body) {
  Reader reader(body);
  ResumeAck message;
  message.process = reader.array<16>();
  message.token = reader.array<16>();
  message.attempt = reader.number<std::uint32_t>();
  return checked(reader, message, "read a RESUME_ACK");
}

Bytes encode(const StillOpen& message) {
  Writer writer;
  writer.number(message.comm);
  writer.number(message.our_comm);
  return make_frame(StillOpen::kType, writer.bytes());
}

template <>
Result<StillOpen> decode<StillOpen>(ByteView body) {
  Reader reader(body);
  StillOpen message;
  message.comm = reader.number<std::uint32_t>();
  message.our_comm = reader.number<std::uint32_t>();
  return checked(reader, message, "read a STILL_OPEN");
}

}  // namespace beeline::wire
