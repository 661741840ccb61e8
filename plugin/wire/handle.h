// SPDX-License-Identifier: Apache-2.0
//
// The handle: 128 bytes that listen() writes and that NCCL carries to the connecting process. It
// names the listening process and the listener, and contains the listener's secret token. Any
// process that has the handle may connect.
//
// The last bytes belong to the connecting process, which writes the number of its attempt there.
// NCCL passes the same memory with every retry of connect(), so that a retry finds its attempt.
//
// message_bytes.h explains fields().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/result.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/message_version.h"

namespace beeline::wire {

inline constexpr std::size_t kHandleBytes = 128;
using HandleBytes = std::span<std::byte, kHandleBytes>;
using ConstHandleBytes = std::span<const std::byte, kHandleBytes>;

// Both are random. A ProcessId is unique among all hosts; a Token is a secret.
using ProcessId = std::array<std::uint8_t, 16>;
using Token = std::array<std::uint8_t, 16>;

// Takes the same time wherever the two differ, so that a token cannot be guessed byte by byte.
inline bool is_same_secret(const Token& a, const Token& b) noexcept {
  volatile std::uint8_t differs = 0;  // volatile: the compiler must not end the loop early
  for (std::size_t i = 0; i < a.size(); ++i) {
    differs = static_cast<std::uint8_t>(differs | (a[i] ^ b[i]));
  }
  return differs == 0;
}

enum class AddressKind : std::uint8_t { kIpv4, kIpv6 };

// An IP address in network byte order, with a port.
struct SocketAddress {
  AddressKind kind = AddressKind::kIpv4;
  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> bytes{};  // IPv4: the first four
  std::uint32_t scope = 0;               // IPv6 link-local: the index of the interface on that host

  // Without the port: an object that has it too names it itself.
  static void fields(auto& io, auto& address) {
    io.choice(address.kind, AddressKind::kIpv6);
    io(address.bytes, address.scope);
  }
  bool operator==(const SocketAddress&) const = default;
};

// What one end of a comm brings along, from which both ends compute their paths.
struct RailCounts {
  std::uint8_t rails = 1;         // devices: 1 to kMaxRails
  std::uint8_t qps_per_rail = 1;  // queue pairs on each of them that its user wants: 1 to kMaxPaths

  static void fields(auto& io, auto& counts) {
    io.within(counts.rails, 1, kMaxRails);
    io.within(counts.qps_per_rail, 1, kMaxPaths);
  }
  bool operator==(const RailCounts&) const = default;
};

inline constexpr std::size_t kHandleTextBytes = 16;

struct Handle {
  VersionRange versions = kOurVersions;
  ProcessId process{};
  std::uint32_t listener = 0;
  Token token{};
  SocketAddress address;
  RailCounts counts = {};  // of the listener
  std::string host;        // cut to kHandleTextBytes, as the next
  std::string device;      // "mlx5_0:1": the listener's first

  static void fields(auto& io, auto& handle) {
    io(handle.versions, handle.listener, handle.process, handle.token);
    io.choice(handle.address.kind, AddressKind::kIpv6);
    io.halves(handle.counts.rails, handle.counts.qps_per_rail);
    io.require(handle.counts.rails >= 1 && handle.counts.rails <= kMaxRails);
    io.require(handle.counts.qps_per_rail >= 1 && handle.counts.qps_per_rail <= kMaxPaths);
    io.within(handle.address.port, 1, UINT16_MAX);
    io(handle.address.scope, handle.address.bytes);
    io.padded(handle.host, kHandleTextBytes);
    io.padded(handle.device, kHandleTextBytes);
  }
  bool operator==(const Handle&) const = default;
};

// The attempt is none.
void encode(const Handle& handle, HandleBytes out);
// kProtocol: these bytes are not a handle of Beeline, or they are damaged. kUnsupported: the two
// sides have no version of the protocol in common; versions_of() tells the other side's.
Result<Handle> decode_handle(ConstHandleBytes bytes);
// Works for a handle of any version.
Result<VersionRange> versions_of(ConstHandleBytes bytes);

// The attempt that the connecting process has written into the handle. 0: none.
std::uint64_t attempt_in(ConstHandleBytes bytes) noexcept;
void set_attempt(HandleBytes bytes, std::uint64_t attempt) noexcept;

}  // namespace beeline::wire
