// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text_style.h"
#include "tools/cli/text_width.h"
#include "tools/hang/report.h"
#include "tools/hang/snapshot.h"

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

bool is_elsewhere(const Cause& cause) { return cause.reason == Reason::kElsewhere; }

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

int run(const Options& options) {
  if (!(options.seconds >= 0 && options.seconds <= 86400)) {
    return tools::print_error(Problem("--seconds: write 0 to 86400"), tools::kUsage);
  }
  if (!options.save.empty() && !options.files.empty()) {
    return tools::print_error(Problem("--save is for this host: leave out the files"),
                              tools::kUsage);
  }
  const std::int64_t now = now_ns();
  const auto found = read(options, now);
  if (!found) return tools::print_error(found.error(), tools::kUsage);
  const tools::TextStyle style = tools::output_style();
  const std::string remarks = tools::fitted(found->left_out.remarks(), tools::terminal_width());
  if (!options.save.empty()) {
    fmt::print(stderr, "{}", remarks);
    const Outcome<void> saved = tools::write_output_and_say(options.save, snapshot_of(*found, now));
    return saved ? 0 : tools::print_error(saved.error(), tools::kUsage);
  }
  const std::vector<JobReport> reports =
      reports_of(found->all, now, static_cast<std::int64_t>(options.seconds * 1e9));
  if (!std::ranges::any_of(reports, runs) && found->left_out.of_running() != 0) {
    return tools::print_error(found->left_out.as_error(), tools::kUsage);
  }
  fmt::print(options.json ? stderr : stdout, "{}", remarks);
  fmt::print("{}", options.json ? json_of(reports, now) : text_of(reports, now, style));
  return exit_status(reports);
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
