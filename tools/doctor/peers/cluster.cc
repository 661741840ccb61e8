// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/cluster.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "tools/cli/host_name.h"
#include "tools/cli/progress.h"
#include "tools/doctor/peers/launch.h"
#include "tools/doctor/peers/member.h"
#include "tools/ranks/admission.h"
#include "tools/ranks/rendezvous.h"

namespace beeline::doctor {
namespace {

constexpr int kGatherSeconds = 60;

}  // namespace

Outcome<LaunchedAs> place_of_this_process() {
  const std::optional<LaunchedAs> launched = launched_as();
  if (!launched) {
    return fail(
        "--cluster: this process was not started by srun, mpirun or torchrun: neither RANK and "
        "WORLD_SIZE nor the variables of Open MPI, PMI or Slurm are set. Use --hostfile instead");
  }
  const auto& [by, rank, ranks] = *launched;
  if (ranks < 2 || rank >= ranks) {
    return fail(
        fmt::format("{}={} and {}={}: --cluster needs two processes or more, on different hosts",
                    by.rank, rank, by.ranks, ranks));
  }
  return *launched;
}

Outcome<std::vector<Peer>> gather_cluster(const std::string& rendezvous, const LaunchedAs& place) {
  ranks::Admission admission({.command = "doctor",
                              .rendezvous = rendezvous,
                              .ranks = static_cast<int>(place.ranks),
                              .timeout_seconds = kGatherSeconds},
                             BL_TRY(ranks::RendezvousListener::open(rendezvous)));
  const auto gather = [&]() -> Outcome<std::vector<ranks::Joined>> {
    const tools::Progress progress(fmt::format("waiting for {} processes", place.ranks - 1));
    return admission.gather();
  };
  std::vector<ranks::Joined> joined = BL_TRY(gather());
  std::vector<Peer> all = BL_TRY(launch({""}, ""));
  std::set<std::string> hosts = {tools::name_of_this_host()};
  // In the order of the ranks. Further ranks of a host find their connection closed, and end.
  for (ranks::Joined& rank : joined) {
    if (!rank.stream || !hosts.insert(rank.about).second) continue;
    all.push_back({.name = rank.about, .stream = std::move(rank.stream)});
  }
  if (all.size() == 1) return fail("--cluster: all ranks run on one host; start one on each host");
  return all;
}

int join_cluster(const std::string& rendezvous, const LaunchedAs& place) {
  const ranks::Hello hello = {.rank = place.rank, .about = tools::name_of_this_host()};
  Outcome<ranks::LineStream> stream = ranks::join("doctor", rendezvous, hello, kGatherSeconds);
  return stream ? serve(*std::move(stream)) : tools::print_error(stream.error());
}

}  // namespace beeline::doctor
