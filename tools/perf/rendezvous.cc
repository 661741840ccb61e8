// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rendezvous.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "common/base/clock.h"
#include "tools/perf/admission.h"
#include "tools/perf/json.h"
#include "tools/perf/rendezvous_socket.h"

namespace beeline::perf {
namespace {

constexpr useconds_t kBetweenAttempts = 20'000;
// The other ranks wait a little longer than rank 0, so that rank 0 gives up first and prints the
// reason.
constexpr std::int64_t kMarginNs = 2 * kNsPerSec;

// Rank 0 may start later than this rank.
Outcome<RendezvousConnection> dial_until(const std::string& rendezvous, std::int64_t deadline) {
  for (;;) {
    Outcome<RendezvousConnection> made = dial(rendezvous, deadline);
    if (made || now_ns() > deadline) return made;
    ::usleep(kBetweenAttempts);
  }
}

}  // namespace

Outcome<std::vector<Member>> gather_members(const Options& options) {
  Admission admission(options, BL_TRY(RendezvousListener::open(options.rendezvous)));
  return admission.gather();
}

Outcome<FrameSocket> join_coordinator(const Options& options) {
  const std::int64_t patience = options.timeout_seconds * kNsPerSec;
  RendezvousConnection made = BL_TRY(dial_until(options.rendezvous, now_ns() + patience));
  const int one = 1;
  ::setsockopt(made.fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  FrameSocket socket(std::move(made.fd));
  socket.send(FrameKind::kHello, encode_hello(options, made.token));
  const std::optional<Frame> answer = socket.receive(now_ns() + patience + kMarginNs);
  if (answer && answer->kind == FrameKind::kWelcome) return socket;
  return fail(
      fmt::format("rank {}: {} did not accept this rank. Rank 0 prints the reason; if rank 0 "
                  "does not run there, correct --rendezvous",
                  options.rank, options.rendezvous));
}

}  // namespace beeline::perf
