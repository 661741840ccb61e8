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

// Frames are small, and writing one waits until it is sent, but for no longer than --timeout.
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
                                       [](const Joined& rank) { return !rank.socket; });
      return fail(fmt::format(
          "{} of {} ranks did not connect to {} within {} s, the first of them rank {}: start all "
          "ranks, with the same address or file; the others print why they cannot join",
          missing_, expected_.ranks, expected_.rendezvous, expected_.timeout_seconds,
          absent - ranks_.begin()));
    }
    BL_TRY(wait_once(deadline));
  }
  for (size_t rank = 1; rank < ranks_.size(); ++rank) {
    ranks_[rank].socket.send(FrameKind::kWelcome, {});
  }
  return std::move(ranks_);
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
    if (waiting[i + 1].revents != 0) BL_TRY(read_frame(clients[i]));
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
    if (is_out_of_descriptors(errno) && !clients_.empty()) {
      refuse(clients_.begin());
      return true;  // the next attempt succeeds
    }
    return fail(fmt::format("cannot accept more ranks: {}; {} of {} are missing",
                            std::strerror(errno), missing_, expected_.ranks));
  }
  prepare(fd.get(), expected_.timeout_seconds);
  clients_.push_back({FrameSocket(std::move(fd), kLongestHello), address_of(address, length)});
  if (clients_.size() > most_clients(ranks_.size(), missing_)) refuse(clients_.begin());
  return true;
}

Outcome<bool> Admission::read_frame(Clients::iterator client) {
  const bool open = client->socket.read_some();
  const std::optional<Frame> frame = client->socket.next();
  if (!frame && open) return true;
  if (frame && frame->kind == FrameKind::kChallenge) {
    if (BL_TRY(prove(*client, frame->body))) return true;
  } else if (const std::optional<Hello> hello =
                 frame ? proven_hello(*client, *frame) : std::nullopt) {
    return admit(client, *hello);
  }
  refuse(client);
  return true;
}

// False: it is no challenge, or a second one.
Outcome<bool> Admission::prove(Client& client, const std::string& challenge) {
  if (challenge.size() != kChallengeBytes || !client.exchange.of_rank_0.empty()) return false;
  std::string random = BL_TRY(random_bytes(kChallengeBytes));
  client.exchange = {.command = expected_.command,
                     .address = proven_address(expected_.rendezvous),
                     .of_rank_0 = std::move(random),
                     .of_other_rank = challenge};
  const std::string proof = proof_of_rank_0(listener_.token(), client.exchange);
  return client.socket.send(FrameKind::kProof, client.exchange.of_rank_0 + proof);
}

std::optional<Hello> Admission::proven_hello(const Client& client, const Frame& frame) const {
  if (frame.kind != FrameKind::kHello || client.exchange.of_rank_0.empty()) return std::nullopt;
  const std::string proof = frame.body.substr(0, kProofBytes);
  const std::string hello = frame.body.substr(proof.size());
  const std::string right = proof_of_other_rank(listener_.token(), client.exchange, hello);
  return are_equal(proof, right) ? read_hello(hello) : std::nullopt;
}

// The client has the token, so any error here is a mistake of the user.
Outcome<bool> Admission::admit(Clients::iterator client, const Hello& hello) {
  const size_t rank = hello.rank;
  if (rank == 0 || rank >= ranks_.size() || ranks_[rank].socket) {
    return fail(fmt::format("rank {} connected twice, or does not exist", rank));
  }
  BL_TRY(expected_.check(hello));
  client->socket.trust();
  ranks_[rank] = {.socket = std::move(client->socket), .about = hello.about};
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

}  // namespace beeline::ranks
