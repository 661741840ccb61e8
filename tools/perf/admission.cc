// SPDX-License-Identifier: Apache-2.0
//
// A client that connects sends its rank and its options.
#include "tools/perf/admission.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/clock.h"
#include "tools/perf/json.h"

namespace beeline::perf {
namespace {

// A hello is smaller than a kilobyte, apart from its list of sizes.
constexpr size_t kLongestHello = size_t{64} << 10;
constexpr size_t kFewestClients = 64;
constexpr int kMostRefusalsShown = 3;

std::string address_of(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return fmt::format("{} port {}", host.data(), port.data());
}

// Frames are small, and writing one waits until it is sent, but for no longer than --timeout.
void prepare(int fd, int timeout_seconds) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const timeval longest{.tv_sec = timeout_seconds, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
}

// Beyond this number the oldest connection is closed. A rank sends its hello at once, but all ranks
// may connect before the first hello is read.
size_t most_clients(const Options& options) {
  return std::max(kFewestClients, 2 * static_cast<size_t>(options.ranks));
}

// Errors of a single connection; the next one may succeed.
bool is_error_of_one_connection(int sys_errno) {
  return sys_errno != EMFILE && sys_errno != ENFILE && sys_errno != ENOBUFS && sys_errno != ENOMEM;
}

}  // namespace

Admission::Admission(const Options& options, RendezvousListener listener)
    : options_(options),
      listener_(std::move(listener)),
      members_(static_cast<size_t>(options.ranks)),
      missing_(members_.size() - 1) {}

Outcome<std::vector<Member>> Admission::gather() {
  const std::int64_t deadline = now_ns() + options_.timeout_seconds * kNsPerSec;
  while (missing_ > 0) {
    if (now_ns() >= deadline) {
      return fail(fmt::format("{} of {} ranks did not connect to {} within {} s (--timeout)",
                              missing_, options_.ranks, options_.rendezvous,
                              options_.timeout_seconds));
    }
    BL_TRY(wait_once(deadline));
  }
  for (size_t rank = 1; rank < members_.size(); ++rank) {
    members_[rank].socket.send(FrameKind::kWelcome, {});
  }
  return std::move(members_);
}

Outcome<bool> Admission::wait_once(std::int64_t deadline) {
  std::vector<pollfd> waiting{{listener_.fd(), POLLIN, 0}};
  std::vector<Clients::iterator> clients;
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    waiting.push_back({client->socket.fd(), POLLIN, 0});
    clients.push_back(client);
  }
  const auto left = static_cast<int>((deadline - now_ns()) / kNsPerMs + 1);
  if (::poll(waiting.data(), waiting.size(), left) <= 0) return true;
  for (size_t i = 0; i < clients.size(); ++i) {
    if (waiting[i + 1].revents != 0) BL_TRY(read_hello(clients[i]));
  }
  if (waiting.front().revents != 0) BL_TRY(accept_client());
  return true;
}

Outcome<bool> Admission::accept_client() {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  UniqueFd fd(
      ::accept4(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC));
  if (!fd) {
    if (is_error_of_one_connection(errno)) return true;
    return fail(fmt::format("cannot accept more ranks: {}; {} of {} are missing",
                            std::strerror(errno), missing_, options_.ranks));
  }
  prepare(fd.get(), options_.timeout_seconds);
  clients_.push_back({FrameSocket(std::move(fd), kLongestHello), address_of(address, length)});
  if (clients_.size() > most_clients(options_)) refuse(clients_.begin());
  return true;
}

Outcome<bool> Admission::read_hello(Clients::iterator client) {
  const bool open = client->socket.read_some();
  const std::optional<Frame> frame = client->socket.next();
  if (!frame && open) return true;
  const std::optional<Hello> hello =
      frame && frame->kind == FrameKind::kHello ? decode_hello(frame->body) : std::nullopt;
  if (hello && hello->token == listener_.token()) return admit(client, *hello);
  refuse(client);
  return true;
}

// The client has the token, if there is one, so any error here is a mistake of the user.
Outcome<bool> Admission::admit(Clients::iterator client, const Hello& hello) {
  const size_t rank = hello.rank;
  if (rank == 0 || rank >= members_.size() || members_[rank].socket) {
    return fail(fmt::format("rank {} connected twice, or does not exist", rank));
  }
  if (hello.terms != terms_of(options_)) {
    return fail(fmt::format("rank {} was started with other options: {}, rank 0 with {}", rank,
                            hello.terms, terms_of(options_)));
  }
  client->socket.trust();
  members_[rank].socket = std::move(client->socket);
  clients_.erase(client);
  --missing_;
  return true;
}

void Admission::refuse(Clients::iterator client) {
  if (refused_++ < kMostRefusalsShown) {
    fmt::print(stderr,
               "beeline: a connection from {} was refused: it is not a rank of this run{}\n",
               client->from, refused_ == kMostRefusalsShown ? " (further ones are not shown)" : "");
  }
  clients_.erase(client);
}

}  // namespace beeline::perf
