// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rendezvous.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "tools/perf/json.h"
#include "tools/perf/rendezvous_socket.h"
#include "tools/perf/token_proof.h"

namespace beeline::perf {
namespace {

constexpr useconds_t kBetweenAttempts = 20'000;
// Rank 0 answers a challenge at once. Then another attempt is made.
constexpr std::int64_t kAnswerNs = 10 * kNsPerSec;
// The other ranks wait a little longer than rank 0, so that rank 0 gives up first and prints the
// reason.
constexpr std::int64_t kMarginNs = 2 * kNsPerSec;

// Exchanges the proofs, and sends the hello.
Outcome<void> prove(FrameSocket& socket, const RendezvousConnection& made, const Hello& hello,
                    std::int64_t deadline) {
  Challenges challenges = {.of_rank_0 = {}, .of_other_rank = BL_TRY(random_bytes(kChallengeBytes))};
  socket.send(FrameKind::kChallenge, challenges.of_other_rank);
  const std::optional<Frame> answer = socket.receive(std::min(deadline, now_ns() + kAnswerNs));
  if (!answer || answer->kind != FrameKind::kProof ||
      answer->body.size() != kChallengeBytes + kProofBytes) {
    return fail(fmt::format(
        "rank {}: the process that listens at {} does not answer as rank 0 does; if rank 0 runs "
        "elsewhere, correct the address, else end that process. All ranks need the same version",
        hello.rank, made.where));
  }
  challenges.of_rank_0 = answer->body.substr(0, kChallengeBytes);
  if (!is_proof_of(ProvingEnd::kRank0, made.token, challenges,
                   std::string_view(answer->body).substr(kChallengeBytes))) {
    return fail(
        Problem(made.is_from_file ? Errc::kInvalid : Errc::kDenied,
                fmt::format("rank {}: the process that listens at {} does not know {}, so this "
                            "rank has ended the exchange: {}",
                            hello.rank, made.where,
                            made.is_from_file ? "the token of the file" : kRendezvousTokenVariable,
                            made.is_from_file
                                ? "the file is of an earlier run; remove it"
                                : "set the same value on all ranks; if it is the same, another "
                                  "process has taken the port: choose another one")));
  }
  const std::string proof = proof_of(ProvingEnd::kOtherRank, made.token, challenges);
  socket.send(FrameKind::kHello, proof + encode(hello));
  return {};
}

Outcome<FrameSocket> try_to_prove(const std::string& rendezvous, const Hello& hello,
                                  std::int64_t deadline) {
  RendezvousConnection made = BL_TRY(dial(rendezvous, deadline));
  const int one = 1;
  ::setsockopt(made.fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  FrameSocket socket(std::move(made.fd), kChallengeBytes + kProofBytes);
  BL_TRY(prove(socket, made, hello, deadline));
  socket.trust();
  return socket;
}

}  // namespace

Outcome<FrameSocket> join(const std::string& rendezvous, const Hello& hello, int timeout_seconds) {
  const std::int64_t patience = timeout_seconds * kNsPerSec;
  const std::int64_t deadline = now_ns() + patience;
  for (;;) {
    // Rank 0 may start later than this rank, and replace a file that an earlier run has left.
    Outcome<FrameSocket> socket = try_to_prove(rendezvous, hello, deadline);
    if (!socket) {
      if (socket.error().code == Errc::kDenied || now_ns() > deadline) return socket;
      ::usleep(kBetweenAttempts);
      continue;
    }
    const std::optional<Frame> answer = socket->receive(now_ns() + patience + kMarginNs);
    if (answer && answer->kind == FrameKind::kWelcome) return socket;
    return fail(
        fmt::format("rank {}: rank 0 at {} has ended, or did not accept this rank; it prints the "
                    "reason",
                    hello.rank, rendezvous));
  }
}

}  // namespace beeline::perf
