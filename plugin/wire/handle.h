// SPDX-License-Identifier: Apache-2.0
//
// The handle: 128 bytes that listen writes and that NCCL carries to the connecting side. Whoever
// has one is invited: it names the process and the listener, and holds the listener's secret.
//
// Its last bytes belong to the connecting side. NCCL passes the same memory with every retry of a
// connect, which is how a retry finds its attempt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/result.h"
#include "plugin/wire/message_version.h"

namespace beeline::wire {

inline constexpr std::size_t kHandleBytes = 128;
using HandleBytes = std::span<std::byte, kHandleBytes>;
using ConstHandleBytes = std::span<const std::byte, kHandleBytes>;

// Random: a process, whatever host it is on; and a secret.
using ProcessId = std::array<std::uint8_t, 16>;
using Token = std::array<std::uint8_t, 16>;

enum class AddressKind : std::uint8_t { kIpv4, kIpv6 };

// An address of a TCP socket, in network order as people read it.
struct SocketAddress {
  AddressKind kind = AddressKind::kIpv4;
  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> bytes{};  // IPv4: the first four
  std::uint32_t scope = 0;               // IPv6 link-local: the number of the interface, there

  bool operator==(const SocketAddress&) const = default;
};

struct Handle {
  VersionRange versions = kOurVersions;
  ProcessId process{};
  std::uint32_t listener = 0;
  Token token{};
  SocketAddress address;
  std::string host;    // cut to what fits
  std::string device;  // "mlx5_0:1"

  bool operator==(const Handle&) const = default;
};

inline constexpr std::size_t kHandleTextBytes = 16;

// Leaves no attempt in it.
void encode(const Handle& handle, HandleBytes out);
// kProtocol: not made by Beeline, or damaged on its way. kUnsupported: made by one whose versions
// we do not speak; versions_of tells which.
Result<Handle> decode_handle(ConstHandleBytes bytes);
// Of a handle of any version.
Result<VersionRange> versions_of(ConstHandleBytes bytes);

// What the connecting side remembers in the handle. 0 is none.
std::uint64_t attempt_in(ConstHandleBytes bytes) noexcept;
void remember_attempt(HandleBytes bytes, std::uint64_t attempt) noexcept;

}  // namespace beeline::wire
