// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/socket/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace beeline {

using wire::AddressKind;
using wire::SocketAddress;

KernelAddress to_kernel(const SocketAddress& address) noexcept {
  KernelAddress kernel;
  switch (address.kind) {
    case AddressKind::kIpv4: {
      sockaddr_in v4{};
      v4.sin_family = AF_INET;
      v4.sin_port = htons(address.port);
      std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof v4.sin_addr);
      std::memcpy(&kernel.storage, &v4, sizeof v4);
      kernel.size = sizeof v4;
      break;
    }
    case AddressKind::kIpv6: {
      sockaddr_in6 v6{};
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(address.port);
      v6.sin6_scope_id = address.scope;
      std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof v6.sin6_addr);
      std::memcpy(&kernel.storage, &v6, sizeof v6);
      kernel.size = sizeof v6;
      break;
    }
  }
  return kernel;
}

std::optional<SocketAddress> from_kernel(const sockaddr* address) noexcept {
  SocketAddress result;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    result.kind = AddressKind::kIpv4;
    result.port = ntohs(v4.sin_port);
    std::memcpy(result.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
    return result;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    result.kind = AddressKind::kIpv6;
    result.port = ntohs(v6.sin6_port);
    result.scope = v6.sin6_scope_id;
    std::memcpy(result.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    return result;
  }
  return std::nullopt;
}

bool is_link_local(const SocketAddress& address) noexcept {
  if (address.kind == AddressKind::kIpv4) {
    return address.bytes[0] == 169 && address.bytes[1] == 254;
  }
  return address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

bool is_loopback(const SocketAddress& address) noexcept {
  if (address.kind == AddressKind::kIpv4) return address.bytes[0] == 127;
  wire::SocketAddress loopback{.kind = AddressKind::kIpv6};
  loopback.bytes[15] = 1;
  return address.bytes == loopback.bytes;
}

std::string ip_text(const SocketAddress& address) {
  char buffer[INET6_ADDRSTRLEN] = "";
  const int family = address.kind == AddressKind::kIpv4 ? AF_INET : AF_INET6;
  inet_ntop(family, address.bytes.data(), buffer, sizeof buffer);
  std::string result = buffer;
  if (address.scope != 0) result += "%" + std::to_string(address.scope);
  return result;
}

std::string text(const SocketAddress& address) {
  const std::string ip = ip_text(address);
  const std::string port = ":" + std::to_string(address.port);
  return address.kind == AddressKind::kIpv4 ? ip + port : "[" + ip + "]" + port;
}

}  // namespace beeline
