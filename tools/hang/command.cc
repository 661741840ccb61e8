// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/text_style.h"
#include "tools/cli/text_width.h"
#include "tools/hang/collectives.h"
#include "tools/hang/lasting.h"
#include "tools/hang/ras_client.h"
#include "tools/hang/report.h"
#include "tools/hang/snapshot.h"
#include "tools/pages/blocked_threads.h"

namespace beeline::hang {
namespace {

// Exit statuses. A job that has ended is no healthy one, nor is one of which a part is not seen.
constexpr int kNoProcess = 3;
constexpr int kIncomplete = 4;

struct Options {
  std::vector<std::string> files;
  std::string save;
  std::string directory = pages::usual_directory();
  double seconds = 5;
  double for_seconds = 0;
  std::string ras = ras_address();
  bool json = false;
};

// Of this host, or of those from which the files are.
Outcome<pages::Processes> read(const Options& options, std::int64_t now_ns) {
  if (options.files.empty()) return pages::read_processes(options.directory);
  pages::Processes all;
  for (const std::string& file : options.files) {
    pages::Processes some = BL_TRY(read_snapshot(file, now_ns));
    for (auto& [reason, owners] : some.left_out.owners) {
      std::ranges::copy(owners, std::back_inserter(all.left_out.owners[reason]));
    }
    for (pages::Process& process : some.all) all.all.push_back(std::move(process));
  }
  return all;
}

bool is_elsewhere(const Cause& cause) {
  return cause.reason == Reason::kElsewhere && cause.unconnected.empty();
}

bool runs(const JobReport& report) { return report.job.runs(); }

// A job that has ended counts only if there is no other.
int exit_status(const std::vector<JobReport>& reports) {
  int status = kNoProcess;
  for (const JobReport& report : reports) {
    if (!runs(report)) continue;
    const std::vector<Cause>& causes = report.analysis.causes;
    if (!causes.empty() && !std::ranges::all_of(causes, is_elsewhere)) return tools::kFailed;
    const bool is_incomplete = status == kIncomplete || !report.analysis.waits.empty();
    status = is_incomplete ? kIncomplete : 0;
  }
  return status;
}

// The advice is to look at the threads of the process.
bool is_for_threads(const Cause& cause) {
  return cause.process &&
         (cause.reason == Reason::kCallsNothing || cause.reason == Reason::kNoReceive ||
          cause.reason == Reason::kNoSend || cause.reason == Reason::kNotAccepted ||
          cause.reason == Reason::kNotBegun);
}

void look_at_threads(const std::vector<pages::Process*>& processes) {
  std::vector<std::int64_t> pids;
  pids.reserve(processes.size());
  for (const pages::Process* const process : processes) pids.push_back(process->pid);
  const std::vector<std::size_t> blocked = pages::count_blocked_threads(pids);
  for (std::size_t i = 0; i < processes.size(); ++i) processes[i]->blocked_threads = blocked[i];
}

void look_at_culprits(std::vector<JobReport>& reports) {
  std::vector<pages::Process*> culprits;
  for (JobReport& report : reports) {
    for (const Cause& cause : report.analysis.causes) {
      if (is_for_threads(cause)) culprits.push_back(&report.job.processes[*cause.process]);
    }
  }
  look_at_threads(culprits);
}

int save(const Options& options) {
  const std::int64_t now = now_ns();
  auto found = read(options, now);
  if (!found) return tools::print_error(found.error(), tools::kUsage);
  std::vector<pages::Process*> running;
  for (pages::Process& process : found->all) {
    if (process.life == pages::Life::kRuns) running.push_back(&process);
  }
  look_at_threads(running);
  fmt::print(stderr, "{}", tools::fitted(found->left_out.remarks(), tools::terminal_width()));
  const Outcome<void> saved = tools::write_output_and_say(options.save, snapshot_of(*found, now));
  return saved ? 0 : tools::print_error(saved.error(), tools::kUsage);
}

struct Look {
  std::int64_t now_ns = 0;
  pages::LeftOut left_out = {};
  std::vector<JobReport> reports = {};
};

Outcome<Look> look(const Options& options) {
  const std::int64_t now = now_ns();
  pages::Processes found = BL_TRY(read(options, now));
  Look made = {.now_ns = now, .left_out = std::move(found.left_out)};
  made.reports =
      reports_of(std::move(found.all), now, static_cast<std::int64_t>(options.seconds * kNsPerSec));
  if (!std::ranges::any_of(made.reports, runs) && made.left_out.of_running() != 0)
    return fail(made.left_out.as_error());
  return made;
}

// Looks once a second. None: no cause has lasted.
Outcome<std::optional<Look>> look_for_long(const Options& options) {
  const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(options.for_seconds * kNsPerSec);
  const tools::Progress progress("looking whether a cause lasts");
  LastingCauses lasting;
  for (;;) {
    Look made = BL_TRY(look(options));
    if (std::ranges::none_of(made.reports, runs)) return made;
    lasting.add(made.reports);
    if (lasting.empty()) return std::nullopt;
    const std::int64_t left_ns = end_ns - made.now_ns;
    if (left_ns <= 0) return made;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left_ns, kNsPerSec)));
  }
}

Outcome<std::optional<Look>> look_as_asked(const Options& options) {
  if (options.for_seconds != 0) return look_for_long(options);
  return BL_TRY(look(options));
}

bool is_stuck(const JobReport& report) {
  return runs(report) && !(report.analysis.waits.empty() && report.analysis.causes.empty());
}

// With several jobs of a user on the host, any of them answers.
Outcome<std::vector<Communicator>> ask_for(const std::string& address,
                                           const std::vector<JobReport>& reports) {
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    std::vector<Communicator> found = BL_TRY(communicators_in(BL_TRY(ask_ras(address))));
    const auto is_theirs = [&](const JobReport& report) {
      return is_stuck(report) && is_of(found, report.job.processes);
    };
    if (std::ranges::any_of(reports, is_theirs)) return found;
  }
  return std::vector<Communicator>();
}

// NCCL's numbers of ranks that run are not of one moment. What differs at two moments counts. None:
// nobody waits, or NCCL does not answer.
std::optional<std::set<std::string>> look_at_collectives(const Options& options,
                                                         const std::vector<JobReport>& reports) {
  if (!options.files.empty() || options.ras == "none") return std::nullopt;
  if (std::ranges::none_of(reports, is_stuck)) return std::nullopt;
  std::set<std::string> common;
  for (const bool is_first : {true, false}) {
    const auto found = ask_for(options.ras, reports);
    if (!found || found->empty()) return std::nullopt;
    std::set<std::string> now = what_differs(*found);
    if (is_first) {
      common = std::move(now);
      std::this_thread::sleep_for(std::chrono::seconds(1));
    } else {
      std::erase_if(common, [&](const std::string& one) { return !now.contains(one); });
    }
  }
  return common;
}

std::string text_of_collectives(const std::set<std::string>& sentences) {
  std::string text = "\nCollectives, as NCCL counts them\n";
  if (sentences.empty()) text += "  all ranks of each communicator have called the same ones\n";
  for (const std::string& one : sentences)
    text += "  " + tools::wrapped(one, 4, tools::terminal_width()) + "\n";
  return text;
}

int run(const Options& options) {
  for (const auto& [name, value] :
       {std::pair("--seconds", options.seconds), std::pair("--for", options.for_seconds)}) {
    if (value >= 0 && value <= 86400) continue;
    return tools::print_error(Problem(std::string(name) + ": write 0 to 86400"), tools::kUsage);
  }
  if (!options.files.empty() && (!options.save.empty() || options.for_seconds != 0)) {
    return tools::print_error(Problem("--save and --for are for this host: leave out the files"),
                              tools::kUsage);
  }
  if (!options.save.empty()) return save(options);
  auto found = look_as_asked(options);
  if (!found) return tools::print_error(found.error(), tools::kUsage);
  if (!*found) {
    fmt::print("{}",
               options.json ? json_of({}, 0) : "no process has waited for the same all the time\n");
    return 0;
  }
  Look& last = **found;
  if (options.files.empty()) look_at_culprits(last.reports);
  const auto collectives = look_at_collectives(options, last.reports);
  const std::string remarks = tools::fitted(last.left_out.remarks(), tools::terminal_width());
  fmt::print(options.json ? stderr : stdout, "{}", remarks);
  if (options.json) {
    fmt::print("{}", json_of(last.reports, last.now_ns, collectives));
  } else {
    fmt::print("{}", text_of(last.reports, last.now_ns, tools::output_style()));
    if (collectives) fmt::print("{}", text_of_collectives(*collectives));
  }
  return exit_status(last.reports);
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  tools::Subcommand command = line.add("hang", "Find which process the others wait for",
                                       [options] { return run(*options); });
  command.add_rest("files", options->files,
                   "What --save has written on several hosts (default: the processes of this host)",
                   "FILE");
  command.add("--save", options->save,
              "Write what the processes of this host wait for to this file, for use with those of "
              "other hosts",
              "FILE");
  command.add("--seconds", options->seconds,
              "Show connections that have waited at least so long (default 5)");
  command.add(
      "--for", options->for_seconds,
      "Look for so many seconds, and report only if there was the same cause all that time, "
      "for scripts: a checkpoint is none");
  command.add("--ras", options->ras,
              "Where NCCL's RAS answers what ranks have called, if some wait (NCCL_RAS_ADDR, or "
              "localhost:28028; none: do not ask)",
              "HOST:PORT");
  command.add_pages_folder(options->directory);
  command.add_flag("--json", options->json, "Print the causes and the waits as JSON");
  command.set_footer(
      "It reads the statistics pages of the processes, and does not touch the processes. Exit "
      "status: 0 none waits, 1 some wait or have lost a peer, and the cause is above, 2 a mistake "
      "in the command line, or pages that this user may not read and no others, 3 no running "
      "process uses Beeline, 4 the cause is not among the pages that were read: it may be on "
      "another host, or of another user.");
}

}  // namespace beeline::hang
