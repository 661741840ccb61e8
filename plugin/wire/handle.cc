// SPDX-License-Identifier: Apache-2.0
//
// The layout of the handle: magic, versions, listener, process, token, address, host, device; from
// byte 104 the attempt, which the connecting process writes; from byte 112 a sum over bytes 0 to
// 103. The second byte of the address has the number of rails in its lower half, and in its upper
// half the queue pairs of each.
#include "plugin/wire/handle.h"

#include <algorithm>

#include "plugin/wire/message_bytes.h"

namespace beeline::wire {
namespace {

constexpr std::size_t kAttemptOffset = 104;
constexpr std::size_t kSumOffset = 112;

// FNV-1a. It detects damage, not forgery: the token is for that.
std::uint32_t sum_of(ByteView bytes) noexcept {
  std::uint32_t sum = 0x811c'9dc5U;
  for (const std::byte byte : bytes) {
    sum = (sum ^ std::to_integer<std::uint32_t>(byte)) * 0x0100'0193U;
  }
  return sum;
}

void put_number(HandleBytes bytes, std::size_t at, std::uint64_t value, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  }
}

static_assert(kMaxRails <= 0xf && kMaxPaths <= 0xf);
std::uint8_t packed(RailCounts counts) noexcept {
  return static_cast<std::uint8_t>(counts.rails | counts.qps_per_rail << 4);
}

}  // namespace

void encode(const Handle& handle, HandleBytes out) {
  Writer writer;
  writer.number(kMagic);
  writer.number(handle.versions.least);
  writer.number(handle.versions.most);
  writer.number(handle.listener);
  writer.array(handle.process);
  writer.array(handle.token);
  writer.choice(handle.address.kind);
  writer.number(packed(handle.counts));
  writer.number(handle.address.port);
  writer.number(handle.address.scope);
  writer.array(handle.address.bytes);
  writer.padded(handle.host, kHandleTextBytes);
  writer.padded(handle.device, kHandleTextBytes);
  const Bytes& bytes = writer.bytes();
  std::fill(std::copy(bytes.begin(), bytes.end(), out.begin()), out.end(), std::byte{0});
  put_number(out, kSumOffset, sum_of(ByteView(out).first(kAttemptOffset)), 4);
}

Result<VersionRange> versions_of(ConstHandleBytes bytes) {
  Reader reader(bytes);
  reader.require(reader.number<std::uint64_t>() == kMagic);
  if (!reader.is_good()) return fail(Errc::kProtocol, "the handle was not made by Beeline");
  const auto least = reader.within<std::uint16_t>(1, UINT16_MAX);
  const auto most = reader.within<std::uint16_t>(least, UINT16_MAX);
  if (!reader.is_good()) return fail(Errc::kProtocol, "the handle is damaged");
  return VersionRange{.least = least, .most = most};
}

Result<Handle> decode_handle(ConstHandleBytes bytes) {
  Handle handle;
  handle.versions = BL_TRY(versions_of(bytes));
  if (!common_version(handle.versions, kOurVersions)) {
    return fail(Errc::kUnsupported, "the handle is of another version of Beeline");
  }
  const auto sum = Reader(ByteView(bytes).subspan(kSumOffset)).number<std::uint32_t>();
  if (sum != sum_of(ByteView(bytes).first(kAttemptOffset))) {
    return fail(Errc::kProtocol, "the handle is damaged");
  }
  Reader reader(ByteView(bytes).subspan(12, kAttemptOffset - 12));
  handle.listener = reader.number<std::uint32_t>();
  handle.process = reader.array<16>();
  handle.token = reader.array<16>();
  handle.address.kind = reader.choice(AddressKind::kIpv6);
  const auto counts = reader.number<std::uint8_t>();
  handle.counts = {.rails = static_cast<std::uint8_t>(counts & 0xf),
                   .qps_per_rail = static_cast<std::uint8_t>(counts >> 4)};
  reader.require(handle.counts.rails >= 1 && handle.counts.rails <= kMaxRails);
  reader.require(handle.counts.qps_per_rail >= 1 && handle.counts.qps_per_rail <= kMaxPaths);
  handle.address.port = reader.within<std::uint16_t>(1, UINT16_MAX);
  handle.address.scope = reader.number<std::uint32_t>();
  handle.address.bytes = reader.array<16>();
  handle.host = reader.padded(kHandleTextBytes);
  handle.device = reader.padded(kHandleTextBytes);
  if (!reader.is_finished()) return fail(Errc::kProtocol, "the handle is damaged");
  return handle;
}

std::uint64_t attempt_in(ConstHandleBytes bytes) noexcept {
  return Reader(ByteView(bytes).subspan(kAttemptOffset)).number<std::uint64_t>();
}

void set_attempt(HandleBytes bytes, std::uint64_t attempt) noexcept {
  put_number(bytes, kAttemptOffset, attempt, sizeof attempt);
}

}  // namespace beeline::wire
