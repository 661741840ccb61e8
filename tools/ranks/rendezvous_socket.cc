// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks/rendezvous_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <utility>

#include "common/base/clock.h"
#include "tools/ranks/token_proof.h"

namespace beeline::ranks {
namespace {

// The timeout for each address of a host name.
constexpr std::int64_t kConnectNs = 5 * kNsPerSec;
constexpr std::size_t kTokenDigits = 32;    // in the file
constexpr std::size_t kShortestToken = 16;  // characters of the variable
constexpr std::size_t kLongestFile = 4096;

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
    return fail(fmt::format("{}: {}; write HOST:PORT, or the path of a file", where,
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

Outcome<std::string> token_of_environment(const std::string& rendezvous) {
  const char* const text = std::getenv(kRendezvousTokenVariable);
  const std::string token = text == nullptr ? "" : text;
  if (token.size() >= kShortestToken) return token;
  return fail(fmt::format(
      "{}: without a token, anyone who reaches this port could pass for a rank. On one host, run: "
      "export {}=$(cat /proc/sys/kernel/random/uuid); and give all ranks that value, of {} "
      "characters or more ({}), or name a file in a folder that they share",
      rendezvous, kRendezvousTokenVariable, kShortestToken,
      token.empty() ? "it is not set" : fmt::format("it has {}", token.size())));
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

// Why a file cannot be the one that rank 0 has written. Empty: it can.
std::string why_foreign(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return "is no regular file";
  if (file.st_uid != ::geteuid()) {
    return fmt::format("belongs to user {}, and this is user {}", file.st_uid, ::geteuid());
  }
  const unsigned mode = file.st_mode & 07777U;
  if ((mode & 077U) != 0) return fmt::format("is open to other users (mode {:04o})", mode);
  if (file.st_size > static_cast<off_t>(kLongestFile)) {
    return fmt::format("is longer than {} bytes", kLongestFile);
  }
  return {};
}

struct Found {
  std::string where = {};
  std::string token = {};
};

// The file names a process to which this one connects, so it counts only if its own user has
// written it.
Outcome<Found> read_file(const std::string& path) {
  const auto refused = [&path](const std::string& why) {
    return fail(Problem(Errc::kDenied,
                        fmt::format("the rendezvous file {} {}. Rank 0 makes it, and only its own "
                                    "user may read and write it: remove the file and start all "
                                    "ranks as one user, or use HOST:PORT",
                                    path, why)));
  };
  const auto absent = [&path] {
    return fail(fmt::format("rank 0 has not written its address to {}", path));
  };
  // Not blocked by a pipe.
  UniqueFd in(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!in && (errno == ENOENT || errno == ESTALE)) return absent();
  if (!in && errno == ELOOP) return refused("is a symbolic link");
  if (!in) return refused(fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) return refused(std::strerror(errno));
  if (const std::string why = why_foreign(status); !why.empty()) return refused(why);
  std::string text(kLongestFile, '\0');
  const ssize_t length = ::read(in.get(), text.data(), text.size());
  std::istringstream words(text.substr(0, static_cast<size_t>(std::max<ssize_t>(length, 0))));
  Found found;
  if (!(words >> found.where >> found.token)) return absent();
  return found;
}

// A later run may have replaced the file.
bool holds_token(const std::string& file, const std::string& token) {
  const Outcome<Found> found = read_file(file);
  return found && found->token == token;
}

Outcome<UniqueFd> listen_at(const std::string& rendezvous, const std::string& where) {
  const Addresses addresses = BL_TRY(resolve(where));
  UniqueFd listener(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int one = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(listener.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return fail(
        fmt::format("cannot listen at {} for the ranks that come to {}: {}; rank 0 must run on "
                    "the machine that has this address, and no other process may have the port",
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
  if (error != std::errc() || stop != end || number < 1 || number > 65535) {
    return fail(fmt::format(
        "{}: write HOST:PORT, with a port from 1 to 65535, or the path of a file", rendezvous));
  }
  BL_TRY(token_of_environment(rendezvous));
  return true;
}

std::string proven_address(const std::string& rendezvous) {
  return is_file(rendezvous) ? std::string() : rendezvous;
}

Outcome<RendezvousListener> RendezvousListener::open(const std::string& rendezvous) {
  if (!is_file(rendezvous)) {
    const std::string token = BL_TRY(token_of_environment(rendezvous));
    return RendezvousListener(BL_TRY(listen_at(rendezvous, rendezvous)), token);
  }
  const std::string address = own_address();
  RendezvousListener listener(BL_TRY(listen_at(rendezvous, address + ":0")),
                              BL_TRY(random_digits(kTokenDigits)));
  const std::string content =
      fmt::format("{}:{} {}\n", address, port_of(listener.fd()), listener.token_);
  if (const int wrong = write_file(rendezvous, content)) {
    return fail(
        fmt::format("cannot write the rendezvous file {}: {}; name a file in a folder that "
                    "you may write",
                    rendezvous, std::strerror(wrong)));
  }
  // Some file systems change the owner, such as NFS that of a file of root. Better said here than
  // by each other rank.
  if (const Outcome<Found> found = read_file(rendezvous); !found) {
    ::unlink(rendezvous.c_str());  // it contains the token, and is not known as this run's later
    return fail(found.error());
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
  const bool is_from_file = is_file(rendezvous);
  const Found found =
      is_from_file ? BL_TRY(read_file(rendezvous))
                   : Found{.where = rendezvous, .token = BL_TRY(token_of_environment(rendezvous))};
  return RendezvousConnection{.fd = BL_TRY(connect_to(found.where, deadline_ns)),
                              .token = found.token,
                              .where = found.where,
                              .is_from_file = is_from_file};
}

}  // namespace beeline::ranks
