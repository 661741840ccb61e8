// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rendezvous.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "common/base/clock.h"
#include "tools/perf/json.h"
#include "tools/perf/meeting_place.h"
#include "tools/perf/reception.h"

namespace beeline::perf {
namespace {

constexpr useconds_t kBetweenAttempts = 20'000;
// The other ranks wait a little longer than rank 0, so that rank 0 gives up first and prints the
// reason.
constexpr std::int64_t kMarginNs = 2 * kNsPerSec;

// Rank 0 may start later than this rank.
Outcome<Doorstep> dial_until(const std::string& rendezvous, std::int64_t deadline) {
  for (;;) {
    Outcome<Doorstep> step = dial(rendezvous, deadline);
    if (step || now_ns() > deadline) return step;
    ::usleep(kBetweenAttempts);
  }
}

}  // namespace

Outcome<std::vector<Member>> gather_members(const Options& options) {
  Reception reception(options, BL_TRY(Door::open(options.rendezvous)));
  return reception.gather();
}

Outcome<Line> join_coordinator(const Options& options) {
  const std::int64_t patience = options.timeout_seconds * kNsPerSec;
  Doorstep step = BL_TRY(dial_until(options.rendezvous, now_ns() + patience));
  const int one = 1;
  ::setsockopt(step.line.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  Line line(std::move(step.line));
  line.send(FrameKind::kHello, encode_hello(options, step.token));
  const std::optional<Frame> answer = line.receive(now_ns() + patience + kMarginNs);
  if (answer && answer->kind == FrameKind::kWelcome) return line;
  return fail(
      fmt::format("rank {}: {} did not accept this rank. Rank 0 prints the reason; if rank 0 "
                  "does not run there, correct --rendezvous",
                  options.rank, options.rendezvous));
}

}  // namespace beeline::perf
