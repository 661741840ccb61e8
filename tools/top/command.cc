// SPDX-License-Identifier: Apache-2.0
#include "tools/top/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/text_style.h"
#include "tools/cli/text_width.h"
#include "tools/top/json.h"
#include "tools/top/screen.h"
#include "tools/top/terminal.h"

namespace beeline::top {
namespace {

// Before the first screen, which needs two looks.
constexpr std::int64_t kFirstPauseNs = 200 * kNsPerMs;

struct Options {
  std::string directory = pages::usual_directory();
  double seconds = 1;
  bool once = false;
  bool connections = false;
  bool json = false;
};

Outcome<Look> look(const std::string& directory) {
  Look look = {.at_ns = now_ns(), .processes = {}};
  pages::Processes found = BL_TRY(pages::read_processes(directory));
  look.processes = std::move(found.all);
  look.left_out = std::move(found.left_out);
  return look;
}

// The first one, which is an error where all pages are of other users.
Outcome<Look> first_look(const std::string& directory) {
  Look first = BL_TRY(look(directory));
  if (first.processes.empty() && first.left_out.of_running() != 0) {
    return fail(first.left_out.as_error());
  }
  return first;
}

Outcome<void> print_once(const Options& options) {
  const Look first = BL_TRY(first_look(options.directory));
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  Look second = BL_TRY(look(options.directory));
  const std::int64_t now = second.at_ns;
  const std::string remarks = tools::fitted(second.left_out.remarks(), tools::terminal_width());
  fmt::print(options.json ? stderr : stdout, "{}", remarks);
  const std::vector<ProcessRate> rates = rates_between(first, std::move(second));
  fmt::print("{}", options.json ? json_of(rates, now)
                                : text_of(rates, now,
                                          {.columns = terminal_columns(STDOUT_FILENO),
                                           .shows_connections = options.connections}));
  return {};
}

Outcome<void> run_in_terminal(const Options& options) {
  Screen screen = {.has_color = tools::wants_color(STDOUT_FILENO),
                   .shows_connections = options.connections};
  screen.keys = "    q: quit, c: connections";
  const auto pause_ns = static_cast<std::int64_t>(options.seconds * 1e9);
  Look before = BL_TRY(first_look(options.directory));
  const Terminal terminal;
  std::optional<char> key = Terminal::key_within(kFirstPauseNs);
  for (; key != 'q'; key = Terminal::key_within(pause_ns)) {
    if (key == 'c') screen.shows_connections = !screen.shows_connections;
    Look now = BL_TRY(look(options.directory));
    const Size size = Terminal::size();
    screen.columns = size.columns;
    screen.rows = size.rows > 1 ? size.rows - 1 : 1;
    fmt::print("\033[H\033[J{}", text_of(rates_between(before, now), now.at_ns, screen));
    std::fflush(stdout);
    before = std::move(now);
  }
  return {};
}

int run(const Options& options) {
  if (!(options.seconds >= 0.1 && options.seconds <= 3600)) {
    return tools::print_error(Problem("--seconds: write 0.1 to 3600"), tools::kUsage);
  }
  const bool is_live =
      !options.once && !options.json && Terminal::is_there() && tools::takes_escapes(STDOUT_FILENO);
  const Outcome<void> done = is_live ? run_in_terminal(options) : print_once(options);
  return done ? 0 : tools::print_error(done.error(), tools::kUsage);
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  tools::Subcommand command =
      line.add("top", "Show what the processes of this host send and receive, by NIC",
               [options] { return run(*options); });
  command.add_flag("--once", options->once,
                   "Measure once, print and end; without a terminal, that is what it does");
  command.add_flag("--connections", options->connections, "Also list each connection");
  command.add_flag("--json", options->json, "Measure once, and print all of it as JSON");
  command.add("--seconds", options->seconds, "How long to measure, and to show (default 1)");
  command.add_pages_folder(options->directory);
  command.set_footer(
      "It reads the statistics pages of the processes, and does not "
      "touch the processes.");
}

}  // namespace beeline::top
