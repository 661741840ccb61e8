// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks/rendezvous.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "tools/ranks/rendezvous_socket.h"
#include "tools/ranks/token_proof.h"

namespace beeline::ranks {
namespace {

constexpr useconds_t kBetweenAttempts = 20'000;
// Rank 0 answers a challenge at once. Then another attempt is made.
constexpr std::int64_t kAnswerNs = 10 * kNsPerSec;
// The other ranks wait a little longer than rank 0, so that rank 0 gives up first and prints the
// reason.
constexpr std::int64_t kMarginNs = 2 * kNsPerSec;

// Exchanges the proofs, and sends the hello.
Outcome<void> prove(LineStream& stream, const RendezvousConnection& made, Exchange exchange,
                    const Hello& hello, std::int64_t deadline) {
  exchange.of_other_rank = BL_TRY(random_digits(kChallengeDigits));
  (void)stream.send(exchange.of_other_rank);
  const Outcome<std::string> answer = stream.receive(std::min(deadline, now_ns() + kAnswerNs));
  if (!answer || answer->size() != kChallengeDigits + kProofDigits) {
    return fail(fmt::format(
        "rank {}: the process that listens at {} does not answer as rank 0 does; if rank 0 runs "
        "elsewhere, correct the address, else end that process. All ranks need the same version",
        hello.rank, made.where));
  }
  exchange.of_rank_0 = answer->substr(0, kChallengeDigits);
  if (!are_equal(answer->substr(kChallengeDigits), proof_of_rank_0(made.token, exchange))) {
    return fail(Problem(
        made.is_from_file ? Errc::kInvalid : Errc::kDenied,
        fmt::format("rank {}: the process that listens at {} does not know {}, or is not "
                    "rank 0 of this run, so this rank has ended the exchange: {}",
                    hello.rank, made.where,
                    made.is_from_file ? "the token of the file" : kRendezvousTokenVariable,
                    made.is_from_file
                        ? "the file is of an earlier run; remove it"
                        : "start all ranks with the same value, version and command and the "
                          "same text for HOST:PORT; if they are the same, another process "
                          "has taken the port: choose another one")));
  }
  const std::string text = text_of(hello);
  (void)stream.send(proof_of_other_rank(made.token, exchange, text) + text);
  return {};
}

Outcome<LineStream> try_to_prove(const std::string& command, const std::string& rendezvous,
                                 const Hello& hello, std::int64_t deadline) {
  RendezvousConnection made = BL_TRY(dial(rendezvous, deadline));
  const int one = 1;
  ::setsockopt(made.fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  LineStream stream(std::move(made.fd), kChallengeDigits + kProofDigits);
  const Exchange exchange = {.command = command, .address = proven_address(rendezvous)};
  BL_TRY(prove(stream, made, exchange, hello, deadline));
  stream.allow(LineStream::kLongest);
  return stream;
}

}  // namespace

Outcome<LineStream> join(const std::string& command, const std::string& rendezvous,
                         const Hello& hello, int timeout_seconds) {
  const std::int64_t patience = timeout_seconds * kNsPerSec;
  const std::int64_t deadline = now_ns() + patience;
  for (;;) {
    // Rank 0 may start later than this rank, and replace a file that an earlier run has left.
    Outcome<LineStream> stream = try_to_prove(command, rendezvous, hello, deadline);
    if (!stream) {
      if (stream.error().code == Errc::kDenied || now_ns() > deadline) return stream;
      ::usleep(kBetweenAttempts);
      continue;
    }
    if (stream->receive(now_ns() + patience + kMarginNs)) return stream;
    return fail(
        fmt::format("rank {}: rank 0 at {} has ended, or did not accept this rank; it prints the "
                    "reason",
                    hello.rank, rendezvous));
  }
}

}  // namespace beeline::ranks
