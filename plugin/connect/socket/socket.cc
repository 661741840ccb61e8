// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/socket/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugin/connect/socket/address.h"

namespace beeline {
namespace {

constexpr int kProbeSeconds = 2;  // before the first keepalive probe, and between probes
constexpr int kFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

Status set_option(int fd, int level, int option, int value, const char* what) {
  if (setsockopt(fd, level, option, &value, sizeof value) != 0) return fail_errno(what);
  return {};
}

Result<UniqueFd> open_socket(const KernelAddress& address) {
  UniqueFd fd(::socket(address.storage.ss_family, kFlags, 0));
  if (!fd) return fail_errno("open a socket");
  return fd;
}

Result<UniqueFd> listen_at(const wire::SocketAddress& where) {
  const KernelAddress address = to_kernel(where);
  UniqueFd fd = BL_TRY(open_socket(address));
  // A port of our choice may be that of a socket which was closed a moment ago (TIME_WAIT).
  if (where.port != 0)
    BL_TRY(set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "set SO_REUSEADDR"));
  if (::bind(fd.get(), address.get(), address.size) != 0) return fail_errno("bind a socket");
  if (::listen(fd.get(), SOMAXCONN) != 0) return fail_errno("listen on a socket");
  return fd;
}

}  // namespace

std::uint32_t first_port_seed() noexcept { return static_cast<std::uint32_t>(::getpid()); }

Result<UniqueFd> open_listening_socket(const wire::SocketAddress& address, const PortRange& ports) {
  wire::SocketAddress chosen = address;
  for (std::uint32_t attempt = 0;; ++attempt) {
    chosen.port = ports.port(attempt, first_port_seed());
    Result<UniqueFd> listening = listen_at(chosen);
    const bool is_used = !listening && listening.error().sys_errno == EADDRINUSE;
    if (!is_used || attempt + 1 == ports.size()) return listening;
  }
}

Result<wire::SocketAddress> local_address(int fd) {
  KernelAddress kernel;
  kernel.size = sizeof kernel.storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&kernel.storage), &kernel.size) != 0) {
    return fail_errno("ask a socket for its address");
  }
  const auto address = from_kernel(kernel.get());
  if (!address) return fail(Errc::kInternal, "ask a socket for its address");
  return *address;
}

std::string remote_text(int fd) {
  KernelAddress kernel;
  kernel.size = sizeof kernel.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&kernel.storage), &kernel.size) != 0) {
    return "an unknown address";
  }
  const auto address = from_kernel(kernel.get());
  return address ? text(*address) : "an unknown address";
}

Result<std::optional<UniqueFd>> accept_one(int listening) {
  UniqueFd fd(::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) return std::optional<UniqueFd>(std::move(fd));
  switch (errno) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPROTO: return std::optional<UniqueFd>{};
    default: return fail_errno("accept a control connection");
  }
}

Result<UniqueFd> start_dial(const wire::SocketAddress& address) {
  const KernelAddress kernel = to_kernel(address);
  UniqueFd fd = BL_TRY(open_socket(kernel));
  if (::connect(fd.get(), kernel.get(), kernel.size) != 0 && errno != EINPROGRESS) {
    return fail_errno("dial");
  }
  return fd;
}

Status dial_outcome(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return fail_errno("dial");
  if (error != 0) return fail(Errc::kSystem, "dial", error);
  return {};
}

Status set_channel_options(int fd, std::chrono::milliseconds peer_timeout) {
  BL_TRY(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "set TCP_NODELAY"));
  BL_TRY(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "set SO_KEEPALIVE"));
  BL_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kProbeSeconds, "set TCP_KEEPIDLE"));
  BL_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds, "set TCP_KEEPINTVL"));
  return set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(peer_timeout.count()),
                    "set TCP_USER_TIMEOUT");
}

Result<std::size_t> receive_some(int fd, std::span<std::byte> buffer) {
  const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return fail(Errc::kPeerClosed, "receive");
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail_errno("receive");
}

Result<std::size_t> send_some(int fd, wire::ByteView bytes) {
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail_errno("send");
}

std::string fd_advice(const Error& error) {
  if (error.sys_errno == ENFILE) {
    return "; this host has as many files open as it may: raise the limit with sysctl fs.file-max";
  }
  rlimit limit{};
  if (error.sys_errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return "; this process may have " + std::to_string(limit.rlim_cur) +
         " files open: raise the limit with ulimit -n, up to " + std::to_string(limit.rlim_max) +
         ", or LimitNOFILE= of its service";
}

}  // namespace beeline
