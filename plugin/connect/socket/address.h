// SPDX-License-Identifier: Apache-2.0
//
// Socket addresses: as the wire has them, as the kernel wants them, and as people read them.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "plugin/wire/handle.h"

namespace beeline {

struct KernelAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

KernelAddress to_kernel(const wire::SocketAddress& address) noexcept;
// Nothing: neither IPv4 nor IPv6.
std::optional<wire::SocketAddress> from_kernel(const sockaddr* address) noexcept;

bool is_link_local(const wire::SocketAddress& address) noexcept;
bool is_loopback(const wire::SocketAddress& address) noexcept;

// "10.0.0.1", "fe80::1%3".
std::string ip_text(const wire::SocketAddress& address);
// "10.0.0.1:4711", "[fe80::1%3]:4711".
std::string text(const wire::SocketAddress& address);

}  // namespace beeline
