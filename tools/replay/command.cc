// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/command.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text_width.h"
#include "tools/pages/processes.h"
#include "tools/replay/text.h"
#include "tools/replay/trace.h"

namespace beeline::replay {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string directory = pages::usual_directory();
  std::string trace;
  bool merge = false;
  bool json = false;
};

Outcome<Recordings> read(const Options& options) {
  if (options.files.empty()) return read_recordings_in(options.directory);
  Recordings recordings;
  for (const std::string& file : options.files) {
    recordings.all.push_back(BL_TRY(read_recording(file)));
  }
  return recordings;
}

Outcome<void> replay(const Options& options) {
  if (options.merge && options.json) {
    return fail("--json is in the order of time already: leave out --merge");
  }
  const Recordings read_ones = BL_TRY(read(options));
  const std::vector<Recording>& recordings = read_ones.all;
  const std::vector<Placement> placements = place_clocks(recordings);
  const std::vector<Entry> timeline = timeline_of(recordings, placements);
  const Story story = {.recordings = recordings,
                       .placements = placements,
                       .timeline = timeline,
                       .width = tools::output_width()};
  if (recordings.empty() && read_ones.left_out.count() != 0) {
    return fail(read_ones.left_out.as_error());
  }
  fmt::print(stderr, "{}", tools::fitted(read_ones.left_out.remarks(), tools::terminal_width()));
  if (!options.trace.empty()) {
    BL_TRY(tools::write_output_and_say(options.trace, trace_of(story)));
    return {};
  }
  if (options.json) return tools::write_output("-", json_lines(story));
  if (recordings.empty()) {
    return tools::write_output(
        "-", fmt::format("no process has left a statistics page with a connection in {}\n",
                         options.directory));
  }
  return tools::write_output("-", options.merge ? text_by_time(story) : text_by_connection(story));
}

int run(const Options& options) {
  const Outcome<void> done = replay(options);
  return done ? 0 : tools::print_error(done.error(), tools::kUsage);
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  tools::Subcommand command =
      line.add("replay", "Show what connections did before they hung or were killed",
               [options] { return run(*options); });
  command.add_rest("files", options->files,
                   "Statistics pages, also copies from other hosts (default: all of this host)",
                   "FILE");
  command.add_flag("--merge", options->merge,
                   "List the events of all processes in the order of time");
  command.add("--trace", options->trace,
              "Write a trace to this file, which Perfetto (ui.perfetto.dev) and chrome://tracing "
              "open",
              "FILE");
  command.add_flag("--json", options->json, "Print a line of JSON for each event");
  command.add_pages_folder(options->directory);
  command.set_footer(
      "The page of a process that was killed or has failed stays for about an hour, or until "
      "newer ones take 16 MiB. Copy it from each host to see all of a job.");
}

}  // namespace beeline::replay
