// SPDX-License-Identifier: Apache-2.0
//
// Functions for TCP sockets that never block.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/base/fd.h"
#include "common/base/port_range.h"
#include "common/base/result.h"
#include "plugin/wire/handle.h"
#include "plugin/wire/message_bytes.h"

namespace beeline {

// On a free port of the range. EADDRINUSE: all are in use.
Result<UniqueFd> open_listening_socket(const wire::SocketAddress& address,
                                       const PortRange& ports = {});
// The seed for PortRange::port().
std::uint32_t first_port_seed() noexcept;
Result<wire::SocketAddress> local_address(int fd);
// For log lines: "10.0.0.2:40312", or "an unknown address" if the peer has already gone.
std::string remote_text(int fd);

// Empty if no connection waits.
Result<std::optional<UniqueFd>> accept_one(int listening);

// The result is known when the socket becomes writable: see dial_outcome.
Result<UniqueFd> start_dial(const wire::SocketAddress& address);
Status dial_outcome(int fd);

// Sets the options of a control channel: no delay, and an error when the peer's host does not
// answer any more. The host of a stopped process still answers.
Status set_channel_options(int fd, std::chrono::milliseconds peer_timeout);

// Returns the number of bytes, 0 if there are none at the moment. The error at the end is
// kPeerClosed.
Result<std::size_t> receive_some(int fd, std::span<std::byte> buffer);
// Returns how many bytes the kernel has taken, 0 if it takes none at the moment.
Result<std::size_t> send_some(int fd, wire::ByteView bytes);

// Advice for when file descriptors run out. The plugin needs only one for each pair of processes,
// but the application may have used up all others: a clause to follow "Too many open files", which
// names the limit and how to raise it. Empty unless the error is about descriptors.
std::string fd_advice(const Error& error);

}  // namespace beeline
