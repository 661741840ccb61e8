// SPDX-License-Identifier: Apache-2.0
//
// See rendezvous.h. Whoever dials in says which rank it is and what it is about to run.
#include "tools/perf/rendezvous.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "plugin/base/clock.h"
#include "tools/perf/json.h"

namespace beeline::perf {
namespace {

using tools::Outcome;

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

bool is_file(const std::string& rendezvous) {
  return rendezvous.find('/') != std::string::npos || rendezvous.find(':') == std::string::npos;
}

Outcome<Addresses> resolve(const std::string& where) {
  const size_t colon = where.rfind(':');
  std::string host = where.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : where.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) {
    return fail(fmt::format("--rendezvous {}: {}; write HOST:PORT, or the path of a file", where,
                            ::gai_strerror(error)));
  }
  return Addresses(list);
}

// The address that other machines are told: of NCCL_SOCKET_IFNAME if that is set, else of the first
// interface that is not the loopback, else the loopback.
std::string own_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "127.0.0.1";
  const char* const wanted = std::getenv("NCCL_SOCKET_IFNAME");
  std::string found = "127.0.0.1";
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const bool fits = wanted != nullptr ? std::string(one->ifa_name).starts_with(wanted)
                                        : (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!fits) continue;
    std::array<char, NI_MAXHOST> text{};
    ::getnameinfo(one->ifa_addr, sizeof(sockaddr_in), text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST);
    found = text.data();
    break;
  }
  ::freeifaddrs(list);
  return found;
}

// Readers see the whole address or none.
bool leave_address(const std::string& file, std::uint16_t port) {
  const std::string fresh = file + ".new";
  {
    std::ofstream out(fresh);
    out << own_address() << ':' << port << '\n';
    if (!out) return false;
  }
  return std::rename(fresh.c_str(), file.c_str()) == 0;
}

Outcome<UniqueFd> listen_at(const std::string& rendezvous) {
  const bool by_file = is_file(rendezvous);
  const Addresses addresses = BL_TRY(resolve(by_file ? "0.0.0.0:0" : rendezvous));
  UniqueFd listener(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(listener.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return fail(fmt::format("cannot listen at {}: {}; rank 0 must run where that address is",
                            rendezvous, std::strerror(errno)));
  }
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  if (by_file && !leave_address(rendezvous, ntohs(bound.sin_port))) {
    return fail(
        fmt::format("cannot write the rendezvous file {}: {}", rendezvous, std::strerror(errno)));
  }
  return listener;
}

Outcome<size_t> greet(Line& line, const Options& options, const std::vector<Member>& members) {
  const std::optional<Frame> frame = line.receive();
  std::optional<Hello> hello;
  if (frame && frame->kind == FrameKind::kHello) hello = decode_hello(frame->body);
  if (!hello) return fail("somebody who is no rank dialled in");
  const size_t rank = hello->rank;
  if (rank == 0 || rank >= members.size() || members[rank].line) {
    return fail(fmt::format("a second rank {} dialled in, or one that does not exist", rank));
  }
  if (hello->terms != terms_of(options)) {
    return fail(fmt::format("rank {} was started with other options: {}, rank 0 with {}", rank,
                            hello->terms, terms_of(options)));
  }
  return rank;
}

Outcome<UniqueFd> dial(const std::string& where) {
  const Addresses addresses = BL_TRY(resolve(where));
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
  }
  return fail(fmt::format("cannot reach rank 0 at {}: {}", where, std::strerror(errno)));
}

Outcome<UniqueFd> dial_by(const std::string& rendezvous) {
  if (!is_file(rendezvous)) return dial(rendezvous);
  std::ifstream in(rendezvous);
  std::string where;
  if (!std::getline(in, where)) {
    return fail(fmt::format("rank 0 has not written its address to {} yet", rendezvous));
  }
  return dial(where);
}

void set_no_delay(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

}  // namespace

// getaddrinfo takes the lower 16 bits of any number.
Outcome<bool> check_rendezvous(const std::string& rendezvous) {
  if (is_file(rendezvous)) return true;
  const std::string port = rendezvous.substr(rendezvous.rfind(':') + 1);
  if (port.size() < 5 || (port.size() == 5 && port <= "65535")) return true;
  return fail(fmt::format("--rendezvous {}: ports are 1 to 65535", rendezvous));
}

Outcome<std::vector<Member>> gather_members(const Options& options) {
  const UniqueFd listener = BL_TRY(listen_at(options.rendezvous));
  std::vector<Member> members(static_cast<size_t>(options.ranks));
  const std::int64_t deadline = now_ns() + options.timeout_seconds * kNsPerSec;
  for (size_t missing = members.size() - 1; missing > 0;) {
    pollfd waiting{listener.get(), POLLIN, 0};
    const auto left = static_cast<int>((deadline - now_ns()) / kNsPerMs);
    if (left <= 0 || ::poll(&waiting, 1, left) == 0) {
      return fail(fmt::format("{} ranks did not dial in at {} within {} s (--timeout)", missing,
                              options.rendezvous, options.timeout_seconds));
    }
    Line line{UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC))};
    if (!line) continue;
    set_no_delay(line.fd());
    const size_t rank = BL_TRY(greet(line, options, members));
    members[rank].line = std::move(line);
    --missing;
  }
  if (is_file(options.rendezvous)) ::unlink(options.rendezvous.c_str());
  return members;
}

Outcome<Line> join_coordinator(const Options& options) {
  const std::int64_t deadline = now_ns() + options.timeout_seconds * kNsPerSec;
  for (;;) {
    Outcome<UniqueFd> fd = dial_by(options.rendezvous);
    if (fd) {
      set_no_delay(fd->get());
      Line line(std::move(*fd));
      line.send(FrameKind::kHello, encode_hello(options));
      return line;
    }
    if (now_ns() > deadline) return fail(std::move(fd).error());
    ::usleep(20'000);  // rank 0 may start later than we do
  }
}

}  // namespace beeline::perf
