// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rendezvous_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "common/base/clock.h"

namespace beeline::perf {
namespace {

// The timeout for each address of a host name.
constexpr std::int64_t kConnectNs = 5 * kNsPerSec;

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

// The address for other machines: that of NCCL_SOCKET_IFNAME if it is set, otherwise that of the
// first interface other than the loopback interface, or else that of the loopback interface.
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

Outcome<std::string> make_token() {
  std::array<unsigned char, 16> chance{};
  if (::getrandom(chance.data(), chance.size(), 0) != static_cast<ssize_t>(chance.size())) {
    return fail(fmt::format("cannot make a token for the rendezvous: {}", std::strerror(errno)));
  }
  std::string token;
  for (const unsigned char byte : chance) token += fmt::format("{:02x}", byte);
  return token;
}

// Returns errno. Readers see either the whole file or no file, and only its owner can read it.
int write_file(const std::string& file, const std::string& content) {
  const std::string fresh = fmt::format("{}.new-{}", file, ::getpid());
  ::unlink(fresh.c_str());  // left by a dead process with the same process ID
  UniqueFd out(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out) return errno;
  const bool written =
      ::write(out.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
      ::close(out.release()) == 0 && ::rename(fresh.c_str(), file.c_str()) == 0;
  if (written) return 0;
  const int wrong = errno;
  ::unlink(fresh.c_str());
  return wrong;
}

// A later run may have replaced the file.
bool holds_token(const std::string& file, const std::string& token) {
  std::ifstream in(file);
  std::string where;
  std::string found;
  return (in >> where >> found) && found == token;
}

Outcome<UniqueFd> listen_at(const std::string& rendezvous, const std::string& where) {
  const Addresses addresses = BL_TRY(resolve(where));
  UniqueFd listener(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int one = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(listener.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return fail(
        fmt::format("cannot listen at {} for --rendezvous {}: {}; rank 0 must run on "
                    "the machine that has this address",
                    where, rendezvous, std::strerror(errno)));
  }
  return listener;
}

std::uint16_t port_of(int listener) {
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &length);
  return ntohs(bound.sin_port);
}

// 0, or errno.
int connect_until(int fd, const addrinfo& address, std::int64_t deadline_ns) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{fd, POLLOUT, 0};
  const std::int64_t left = std::min(deadline_ns - now_ns(), kConnectNs);
  const int ready =
      ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left, 0) / kNsPerMs));
  if (ready == 0) return ETIMEDOUT;
  if (ready < 0) return errno;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

Outcome<UniqueFd> connect_to(const std::string& where, std::int64_t deadline_ns) {
  const Addresses addresses = BL_TRY(resolve(where));
  int wrong = 0;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    wrong = fd ? connect_until(fd.get(), *one, deadline_ns) : errno;
    if (wrong != 0) continue;
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
    return fd;
  }
  return fail(fmt::format("cannot reach rank 0 at {}: {}", where, std::strerror(wrong)));
}

}  // namespace

Outcome<bool> check_rendezvous(const std::string& rendezvous) {
  if (is_file(rendezvous)) return true;
  const std::string port = rendezvous.substr(rendezvous.rfind(':') + 1);
  const char* const end = port.data() + port.size();
  unsigned number = 0;
  const auto [stop, error] = std::from_chars(port.data(), end, number);
  if (error == std::errc() && stop == end && number >= 1 && number <= 65535) return true;
  return fail(
      fmt::format("--rendezvous {}: write HOST:PORT, with a port from 1 to 65535, or the "
                  "path of a file",
                  rendezvous));
}

Outcome<RendezvousListener> RendezvousListener::open(const std::string& rendezvous) {
  if (!is_file(rendezvous)) return RendezvousListener(BL_TRY(listen_at(rendezvous, rendezvous)));
  const std::string address = own_address();
  RendezvousListener listener(BL_TRY(listen_at(rendezvous, address + ":0")));
  listener.token_ = BL_TRY(make_token());
  const std::string content =
      fmt::format("{}:{} {}\n", address, port_of(listener.fd()), listener.token_);
  if (const int wrong = write_file(rendezvous, content)) {
    return fail(
        fmt::format("cannot write the rendezvous file {}: {}; name a file in a folder that "
                    "you may write",
                    rendezvous, std::strerror(wrong)));
  }
  listener.file_ = rendezvous;
  return listener;
}

RendezvousListener::RendezvousListener(RendezvousListener&& other) noexcept
    : listener_(std::move(other.listener_)),
      token_(std::move(other.token_)),
      file_(std::exchange(other.file_, {})) {}

RendezvousListener::~RendezvousListener() {
  if (!file_.empty() && holds_token(file_, token_)) ::unlink(file_.c_str());
}

Outcome<RendezvousConnection> dial(const std::string& rendezvous, std::int64_t deadline_ns) {
  if (!is_file(rendezvous))
    return RendezvousConnection{BL_TRY(connect_to(rendezvous, deadline_ns)), {}};
  std::ifstream in(rendezvous);
  std::string where;
  std::string token;
  if (!(in >> where >> token)) {
    return fail(fmt::format(
        "rank 0 has not written its address to {}, or this user may not read it", rendezvous));
  }
  return RendezvousConnection{BL_TRY(connect_to(where, deadline_ns)), token};
}

}  // namespace beeline::perf
