// SPDX-License-Identifier: Apache-2.0
//
// A client sends a challenge, gets rank 0's proof, and sends its own proof and its rank.
#include "tools/ranks/admission.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/clock.h"

namespace beeline::ranks {
namespace {

// A hello is smaller than a kilobyte, apart from its list of sizes.
constexpr size_t kLongestHello = size_t{64} << 10;
constexpr size_t kFewestClients = 64;
constexpr size_t kSpareDescriptors = 64;
constexpr int kMostRefusalsShown = 3;

std::string address_of(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return fmt::format("{} port {}", host.data(), port.data());
}

// Lines are small, and writing one waits until it is sent, but for no longer than --timeout.
void prepare(int fd, int timeout_seconds) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const timeval longest{.tv_sec = timeout_seconds, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
}

// Beyond this number the oldest connection is closed. A rank sends its hello at once, but all ranks
// may connect before the first hello is read. Some descriptors are left for other things.
size_t most_clients(size_t ranks, size_t missing) {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) descriptors.rlim_cur = RLIM_INFINITY;
  const size_t used = ranks - missing + kSpareDescriptors;
  const size_t left = descriptors.rlim_cur > used ? descriptors.rlim_cur - used : 1;
  return std::min(std::max(kFewestClients, 2 * ranks), left);
}

bool is_out_of_descriptors(int sys_errno) { return sys_errno == EMFILE || sys_errno == ENFILE; }

// Errors of a single connection; the next one may succeed.
bool is_error_of_one_connection(int sys_errno) {
  return !is_out_of_descriptors(sys_errno) && sys_errno != ENOBUFS && sys_errno != ENOMEM;
}

}  // namespace

Admission::Admission(Expected expected, RendezvousListener listener)
    : expected_(std::move(expected)),
      listener_(std::move(listener)),
      ranks_(static_cast<size_t>(expected_.ranks)),
      missing_(ranks_.size() - 1) {}

Outcome<std::vector<Joined>> Admission::gather() {
  const std::int64_t deadline = now_ns() + expected_.timeout_seconds * kNsPerSec;
  while (missing_ > 0) {
    if (now_ns() >= deadline) {
      const auto absent = std::find_if(ranks_.begin() + 1, ranks_.end(),
                                       [](const Joined& rank) { return !rank.stream; });
      return fail(fmt::format(
          "{} of {} ranks did not connect to {} within {} s, the first of them rank {}: start all "
          "ranks, with the same address or file; the others print why they cannot join",
          missing_, expected_.ranks, expected_.rendezvous, expected_.timeout_seconds,
          absent - ranks_.begin()));
    }
    BL_TRY(wait_once(deadline));
  }
  for (size_t rank = 1; rank < ranks_.size(); ++rank) {
    (void)ranks_[rank].stream.send("welcome");
  }
  return std::move(ranks_);
}

Outcome<void> Admission::wait_once(std::int64_t deadline) {
  std::vector<pollfd> waiting{{listener_.fd(), POLLIN, 0}};
  std::vector<Clients::iterator> clients;
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    waiting.push_back({client->stream.fd(), POLLIN, 0});
    clients.push_back(client);
  }
  const auto left = static_cast<int>((deadline - now_ns()) / kNsPerMs + 1);
  if (::poll(waiting.data(), waiting.size(), left) <= 0) return {};
  for (size_t i = 0; i < clients.size(); ++i) {
    if (waiting[i + 1].revents != 0) BL_TRY(read_line(clients[i]));
  }
  if (waiting.front().revents != 0) BL_TRY(accept_client());
  return {};
}

Outcome<void> Admission::accept_client() {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  UniqueFd fd(
      ::accept4(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC));
  if (!fd) {
    if (is_error_of_one_connection(errno)) return {};
    if (is_out_of_descriptors(errno) && !clients_.empty()) {
      refuse(clients_.begin());
      return {};  // the next attempt succeeds
    }
    return fail(fmt::format("cannot accept more ranks: {}; {} of {} are missing",
                            std::strerror(errno), missing_, expected_.ranks));
  }
  prepare(fd.get(), expected_.timeout_seconds);
  clients_.push_back({LineStream(std::move(fd), kLongestHello), address_of(address, length)});
  if (clients_.size() > most_clients(ranks_.size(), missing_)) refuse(clients_.begin());
  return {};
}

Outcome<void> Admission::read_line(Clients::iterator client) {
  const bool is_open = static_cast<bool>(client->stream.read_some());
  const std::optional<std::string> line = client->stream.next();
  if (!line && is_open) return {};
  if (line && client->exchange.of_rank_0.empty()) {
    if (BL_TRY(prove(*client, *line))) return {};
  } else if (const std::optional<Hello> hello =
                 line ? proven_hello(*client, *line) : std::nullopt) {
    return admit(client, *hello);
  }
  refuse(client);
  return {};
}

// False: it is no challenge.
Outcome<bool> Admission::prove(Client& client, const std::string& challenge) {
  if (challenge.size() != kChallengeDigits) return false;
  std::string random = BL_TRY(random_digits(kChallengeDigits));
  client.exchange = {.command = expected_.command,
                     .address = proven_address(expected_.rendezvous),
                     .of_rank_0 = std::move(random),
                     .of_other_rank = challenge};
  const std::string proof = proof_of_rank_0(listener_.token(), client.exchange);
  return static_cast<bool>(client.stream.send(client.exchange.of_rank_0 + proof));
}

std::optional<Hello> Admission::proven_hello(const Client& client, const std::string& line) const {
  const std::string proof = line.substr(0, kProofDigits);
  const std::string hello = line.substr(proof.size());
  const std::string right = proof_of_other_rank(listener_.token(), client.exchange, hello);
  return are_equal(proof, right) ? read_hello(hello) : std::nullopt;
}

// The client has the token, so any error here is a mistake of the user.
Outcome<void> Admission::admit(Clients::iterator client, const Hello& hello) {
  const size_t rank = hello.rank;
  if (rank == 0 || rank >= ranks_.size() || ranks_[rank].stream) {
    return fail(fmt::format("rank {} connected twice, or does not exist", rank));
  }
  BL_TRY(expected_.check(hello));
  client->stream.allow(LineStream::kLongest);
  ranks_[rank] = {.stream = std::move(client->stream), .about = hello.about};
  clients_.erase(client);
  --missing_;
  return {};
}

void Admission::refuse(Clients::iterator client) {
  if (refused_++ < kMostRefusalsShown) {
    fmt::print(stderr,
               "beeline: a connection from {} was refused: it is not a rank of this run{}\n",
               client->from, refused_ == kMostRefusalsShown ? " (further ones are not shown)" : "");
  }
  clients_.erase(client);
}

}  // namespace beeline::ranks
