// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "common/base/clock.h"
#include "common/base/launchers.h"
#include "tools/cli/host_name.h"
#include "tools/doctor/peers/launch.h"
#include "tools/doctor/peers/member.h"
#include "tools/perf/rendezvous_socket.h"

namespace beeline::doctor {
namespace {

constexpr std::int64_t kGatherNs = 60 * kNsPerSec;
// A client that is not one of the doctors must not hold them up for longer.
constexpr std::int64_t kHelloNs = 2 * kNsPerSec;
constexpr useconds_t kBetweenAttempts = 20'000;

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int number = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

// The first line of a doctor that joins: its rank, its host, and the token of the file.
struct Hello {
  int rank = 0;
  std::string host = {};
  std::string token = {};
};

Outcome<Hello> read_hello(LineStream& stream) {
  const std::string line = BL_TRY(stream.receive(now_ns() + kHelloNs));
  std::istringstream words(BL_TRY(decode_text(line)));
  Hello hello;
  words >> hello.rank >> hello.host >> hello.token;
  return hello;
}

LineStream stream_over(UniqueFd socket) {
  const int one = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  UniqueFd out(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
  return {std::move(socket), std::move(out)};
}

std::string ranks_text(const std::set<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

Outcome<Place> place_of_this_process() {
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = number_in(launcher.rank);
    const std::optional<int> ranks = number_in(launcher.ranks);
    if (!rank || !ranks) continue;
    if (*ranks < 2 || *rank < 0 || *rank >= *ranks) {
      return fail(
          fmt::format("{}={} and {}={}: --cluster needs two processes or more, on different "
                      "hosts",
                      launcher.rank, *rank, launcher.ranks, *ranks));
    }
    return Place{.rank = *rank, .ranks = *ranks};
  }
  return fail(
      "--cluster: this process was not started by srun, mpirun or torchrun: neither RANK and "
      "WORLD_SIZE nor the variables of Open MPI, PMI or Slurm are set. Use --hostfile instead");
}

Outcome<std::vector<Peer>> gather_cluster(const std::string& rendezvous, const Place& place) {
  const perf::RendezvousListener listener = BL_TRY(perf::RendezvousListener::open(rendezvous));
  std::map<std::string, Peer> peers;
  std::map<std::string, int> lowest_rank;
  std::set<int> missing;
  for (int rank = 1; rank < place.ranks; ++rank) missing.insert(rank);
  const std::int64_t deadline = now_ns() + kGatherNs;
  while (!missing.empty()) {
    pollfd waiting = {.fd = listener.fd(), .events = POLLIN, .revents = 0};
    const std::int64_t left = deadline - now_ns();
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left / kNsPerMs) + 1) == 0) {
      return fail(
          fmt::format("rank {} did not come to {} within {} s: were all ranks started, "
                      "with the same --cluster?",
                      ranks_text(missing), rendezvous, kGatherNs / kNsPerSec));
    }
    UniqueFd socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) continue;
    LineStream stream = stream_over(std::move(socket));
    const Outcome<Hello> hello = read_hello(stream);
    if (!hello || hello->token != listener.token() || missing.erase(hello->rank) == 0) continue;
    if (hello->host == tools::name_of_this_host()) continue;
    // Further ranks of a host find their connection closed, and end.
    peers.try_emplace(hello->host, Peer{.name = hello->host, .stream = std::move(stream)});
    int& lowest = lowest_rank.try_emplace(hello->host, hello->rank).first->second;
    lowest = std::min(lowest, hello->rank);
  }
  if (peers.empty()) return fail("--cluster: all ranks run on one host; start one on each host");
  std::vector<Peer> all = BL_TRY(launch({""}, ""));
  for (auto& [name, peer] : peers) all.push_back(std::move(peer));
  // The order of the job, which by name would be h1, h10, h2.
  std::ranges::sort(all.begin() + 1, all.end(), {},
                    [&](const Peer& peer) { return lowest_rank[peer.name]; });
  return all;
}

int join_cluster(const std::string& rendezvous, const Place& place) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::int64_t deadline = now_ns() + kGatherNs;
  for (;;) {
    Outcome<perf::RendezvousConnection> made = perf::dial(rendezvous, deadline);
    if (made) {
      LineStream stream = stream_over(std::move(made->fd));
      const std::string hello =
          fmt::format("{} {} {}", place.rank, tools::name_of_this_host(), made->token);
      if (const Outcome<void> sent = stream.send(encode_text(hello)); !sent) {
        return tools::print_error(sent.error());
      }
      return serve(std::move(stream));
    }
    if (now_ns() > deadline) return tools::print_error(made.error());
    ::usleep(kBetweenAttempts);
  }
}

}  // namespace beeline::doctor
