// SPDX-License-Identifier: Apache-2.0
//
// TCP sockets that never block.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "plugin/wire/handle.h"
#include "plugin/wire/message_bytes.h"

namespace beeline {

// On a port that the kernel chooses.
Result<UniqueFd> open_listening_socket(const wire::SocketAddress& address);
Result<wire::SocketAddress> local_address(int fd);
// For log lines: "10.0.0.2:40312", or "somebody" when it is gone already.
std::string remote_text(int fd);

// Nothing: nobody waits.
Result<std::optional<UniqueFd>> accept_one(int listening);

// Writable means decided: ask dial_outcome.
Result<UniqueFd> start_dial(const wire::SocketAddress& address);
Status dial_outcome(int fd);

// What a control channel needs: no delay, and notice of a host that went silent. A process that is
// merely stopped is not silent, since its kernel answers for it.
Status make_watched(int fd, std::chrono::milliseconds peer_timeout);

// How many bytes: 0 is nothing at the moment. kPeerClosed at the end.
Result<std::size_t> receive_some(int fd, std::span<std::byte> room);
// How many the kernel took: 0 is none at the moment.
Result<std::size_t> send_some(int fd, wire::ByteView bytes);

}  // namespace beeline
