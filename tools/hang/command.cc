// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/command.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "tools/cli/exit_status.h"
#include "tools/hang/report.h"

namespace beeline::hang {
namespace {

struct Options {
  std::string directory = pages::usual_directory();
  double seconds = 5;
  bool json = false;
};

int run(const Options& options) {
  if (!(options.seconds >= 0 && options.seconds <= 86400)) {
    return tools::print_error(Problem("--seconds: write 0 to 86400"), tools::kUsage);
  }
  const auto found = pages::read_processes(options.directory);
  if (!found) return tools::print_error(found.error(), tools::kUsage);
  const std::vector<pages::Process>& processes = found->all;
  const Analysis analysis =
      find_causes(processes, now_ns(), static_cast<std::int64_t>(options.seconds * 1e9));
  if (options.json) {
    fmt::print("{}", json_of(analysis, processes));
  } else {
    fmt::print("{}{}", pages::remark_on(found->unreadable), text_of(analysis, processes));
  }
  return analysis.waits.empty() ? 0 : tools::kFailed;
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  tools::Subcommand command =
      line.add("hang", "Find which process of this host the others wait for",
               [options] { return run(*options); });
  command.add("--seconds", options->seconds,
              "Show connections that have waited at least so long (default 5)");
  command.add("--dir", options->directory,
              "The directory of the statistics pages (default: BEELINE_STATS_DIR, or /dev/shm)",
              "FOLDER");
  command.add_flag("--json", options->json, "Print the causes and the waits as JSON");
  command.set_footer(
      "It reads the statistics pages of the processes, and does not touch the processes. Exit "
      "status: 0 none waits, 1 some wait, 2 a mistake in the command line.");
}

}  // namespace beeline::hang
