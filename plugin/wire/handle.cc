// SPDX-License-Identifier: Apache-2.0
//
// The layout of the handle: Handle::fields(); from byte 104 the attempt, which the connecting
// process writes; from byte 112 a sum over bytes 0 to 103.
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

template <class T>
T number_at(ConstHandleBytes bytes, std::size_t at) noexcept {
  T value = 0;
  Reader reader(ByteView(bytes).subspan(at));
  reader(value);
  return value;
}

void put_number(HandleBytes bytes, std::size_t at, std::uint64_t value, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  }
}

}  // namespace

void encode(const Handle& handle, HandleBytes out) {
  Writer writer;
  writer(handle);
  const Bytes& bytes = writer.bytes();
  std::fill(std::copy(bytes.begin(), bytes.end(), out.begin()), out.end(), std::byte{0});
  put_number(out, kSumOffset, sum_of(ByteView(out).first(kAttemptOffset)), 4);
}

Result<VersionRange> versions_of(ConstHandleBytes bytes) {
  if (number_at<std::uint64_t>(bytes, 0) != kMagic) {
    return fail(Errc::kProtocol, "the handle was not made by Beeline");
  }
  VersionRange versions;
  Reader reader(bytes);
  reader(versions);
  if (!reader.is_good()) return fail(Errc::kProtocol, "the handle is damaged");
  return versions;
}

Result<Handle> decode_handle(ConstHandleBytes bytes) {
  if (!common_version(BL_TRY(versions_of(bytes)), kOurVersions)) {
    return fail(Errc::kUnsupported, "the handle is of another version of Beeline");
  }
  const ByteView body = ByteView(bytes).first(kAttemptOffset);
  Handle handle;
  Reader reader(body);
  reader(handle);
  if (!reader.is_finished() || number_at<std::uint32_t>(bytes, kSumOffset) != sum_of(body)) {
    return fail(Errc::kProtocol, "the handle is damaged");
  }
  return handle;
}

std::uint64_t attempt_in(ConstHandleBytes bytes) noexcept {
  return number_at<std::uint64_t>(bytes, kAttemptOffset);
}

void set_attempt(HandleBytes bytes, std::uint64_t attempt) noexcept {
  put_number(bytes, kAttemptOffset, attempt, sizeof attempt);
}

}  // namespace beeline::wire
