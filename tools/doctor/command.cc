// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/command.h"

#include <fmt/format.h>

#include <memory>

#include "tools/cli/exit_status.h"
#include "tools/doctor/doctor.h"

namespace beeline::doctor {
namespace {

constexpr double kMostSeconds = 3600;

// Checks the options for several hosts.
Outcome<void> check_several(const Options& options) {
  const auto given = static_cast<int>(!options.peers.empty()) +
                     static_cast<int>(!options.hostfile.empty()) +
                     static_cast<int>(!options.cluster.empty());
  if (given == 0 && !options.svg.empty()) {
    return fail("--svg draws the rails between hosts: add --peer HOST");
  }
  if (given == 0 && !options.launch.empty()) {
    return fail("--launch starts the doctor on other hosts: add --peer HOST");
  }
  if (given > 1) return fail("--peer, --hostfile and --cluster: choose one of them");
  const bool has_other = !options.root.empty() || !options.record.empty() || options.list ||
                         options.all || !options.compare.empty();
  if (given == 1 && has_other) {
    return fail(
        "several hosts are looked at as they are; --root, --record, --compare, --list and --all "
        "cannot be combined with --peer, --hostfile or --cluster");
  }
  if (!options.cluster.empty() && !options.launch.empty()) {
    return fail("--launch: with --cluster the doctors are started by srun, mpirun or torchrun");
  }
  return {};
}

Outcome<void> check_options(const Options& options) {
  if (!(options.seconds >= 0 && options.seconds <= kMostSeconds)) {
    return fail(
        fmt::format("--seconds {}: write a time from 0 to {}", options.seconds, kMostSeconds));
  }
  if (options.list && (options.all || !options.root.empty() || !options.record.empty())) {
    return fail("--list looks at no host; it can be combined only with --json");
  }
  if (!options.compare.empty() &&
      (!options.root.empty() || !options.record.empty() || options.all || options.list)) {
    return fail("--compare shows only what differs; it can be combined only with --json");
  }
  if (!options.record.empty() && !options.root.empty()) {
    return fail("--record makes a record of this host; it cannot be combined with --root");
  }
  if (!options.record.empty() && (options.json || options.all)) {
    return fail("--record only writes the record; run beeline doctor again for the findings");
  }
  if (options.with_addresses && options.record.empty()) {
    return fail("--with-addresses belongs to --record FILE");
  }
  return check_several(options);
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  const auto start = [options] {
    const Outcome<void> checked = check_options(*options);
    if (!checked) return tools::print_error(checked.error(), tools::kUsage);
    return run(*options);
  };
  tools::Subcommand doctor =
      line.add("doctor", "Find what keeps RDMA from working, or slow, on this host", start);
  doctor.add("--root", options->root,
             "Look at this host instead: a file that --record has made, or a folder that takes the "
             "place of /",
             "FILE");
  doctor.add("--record", options->record,
             "Write what the doctor reads on this host into FILE, to look at it elsewhere", "FILE");
  doctor.add_list("--compare", options->compare,
                  "Show what differs between hosts, each as for --root. Exit status 0: nothing, 1: "
                  "something",
                  "FILE...");
  doctor.begin_group("Several hosts");
  doctor.add_each("--peer", options->peers,
                  "Look at this host and at HOST, on which ssh must be able to run a command: what "
                  "differs, and whether each rail of one reaches each of the other",
                  "HOST");
  doctor.add(
      "--hostfile", options->hostfile,
      "The same with the hosts that FILE names, one on each line. More than two hosts: rails "
      "of the same position",
      "FILE");
  doctor.add("--cluster", options->cluster,
             "The same with the hosts on which srun, mpirun or torchrun runs this command. Its "
             "ranks meet at a file in a shared folder, or at HOST:PORT of rank 0 with a secret in "
             "BEELINE_RENDEZVOUS_TOKEN",
             "FILE");
  doctor.add("--launch", options->launch,
             "The command that runs another one on {host} (default: ssh -o BatchMode=yes -o "
             "ConnectTimeout=20 {host})",
             "COMMAND");
  doctor.add("--svg", options->svg, "Draw the rails between the hosts into FILE", "FILE");
  doctor.add_flag("--serve", options->serve,
                  "Answer the doctor of another host; --peer and --hostfile start this");
  doctor.begin_group("Options");
  doctor.add_flag("--with-addresses", options->with_addresses,
                  "Leave the addresses of the network in the record");
  doctor.add("--seconds", options->seconds,
             "How long to watch the error counters of the ports (default 1; 0: not at all)");
  doctor.add_flag("--all", options->all, "Also list what is as it should be");
  doctor.add_flag("--json", options->json, "Print JSON instead of text");
  doctor.add_flag("--list", options->list, "List everything that the doctor can find");
  doctor.set_footer(
      "Exit status: 0 nothing is wrong, 1 something will fail or is slow, 2 a mistake in the "
      "command line or in the file that it names.");
}

}  // namespace beeline::doctor
