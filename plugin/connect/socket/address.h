// SPDX-License-Identifier: Apache-2.0
//
// Converts socket addresses between the plugin's messages, the kernel and text.
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
// Empty unless it is IPv4 or IPv6.
std::optional<wire::SocketAddress> from_kernel(const sockaddr* address) noexcept;

bool is_link_local(const wire::SocketAddress& address) noexcept;
bool is_loopback(const wire::SocketAddress& address) noexcept;

// "10.0.0.1", "fe80::1%3".
std::string ip_text(const wire::SocketAddress& address);
// "10.0.0.1:4711", "[fe80::1%3]:4711".
std::string text(const wire::SocketAddress& address);

}  // namespace beeline
