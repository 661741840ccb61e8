// SPDX-License-Identifier: Apache-2.0
// The `softnic` program: its command line. Exit status 2 is a mistake in the command line, 1 a
// failure; `softnic run` otherwise ends with the status of its command.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "softnic/cli/common.h"
#include "softnic/cli/ctl.h"
#include "softnic/cli/ls.h"
#include "softnic/cli/run.h"
#include "softnic/spec/names.h"

namespace {

using softnic::cli::RunOptions;

// What the command line holds, for all subcommands.
struct Line {
  RunOptions run;
  std::string port;
  std::vector<std::string> commands;
};

CLI::App* add_run(CLI::App& app, Line& line) {
  CLI::App* const run = app.add_subcommand("run", "Run a command on a host of a fabric");
  run->add_option("--name", line.run.name, "Fabric to make or join (SOFTNIC_FABRIC, or default)");
  run->add_option("--fabric", line.run.fabric_file, "TOML file that describes a new fabric");
  run->add_option("--host", line.run.host, "Host to run on (SOFTNIC_HOST, or the first)");
  run->footer("The command comes after --:  softnic run --host h1 -- ibv_devinfo -v");
  run->allow_extras();
  return run;
}

CLI::App* add_ls(CLI::App& app, Line& line) {
  CLI::App* const ls = app.add_subcommand("ls", "Show fabrics, their ports and processes");
  ls->add_option("--name", line.run.name, "This fabric only");
  return ls;
}

CLI::App* add_ctl(CLI::App& app, Line& line) {
  CLI::App* const ctl = app.add_subcommand("ctl", "Change a port of a running fabric");
  ctl->add_option("--name", line.run.name, "The fabric (SOFTNIC_FABRIC, or default)");
  ctl->add_option("port", line.port, "[host/]device[:port]")->required();
  ctl->add_option("command", line.commands,
                  "down, up, rate=200M|max, latency=50us, error=STATUS@N, corrupt@N, reset")
      ->required();
  return ctl;
}

// The parser would only say that a subcommand is missing.
int unknown_word(const std::string& word) {
  const std::vector<std::string> known{"run", "ls", "ctl"};
  return softnic::cli::complain(
      "\"" + word + "\" is not a subcommand; there are " + softnic::listing(known),
      softnic::cli::kUsage);
}

int start_run(const Line& line, const std::vector<std::string>& extras) {
  if (!extras.empty())
    return softnic::cli::complain("run: \"" + extras.front() +
                                      "\" is not an option; put -- before " +
                                      "the command: softnic run -- COMMAND...",
                                  softnic::cli::kUsage);
  if (line.run.command.empty())
    return softnic::cli::complain("run: no command; write softnic run -- COMMAND...",
                                  softnic::cli::kUsage);
  return softnic::cli::run(line.run);
}

int dispatch(int argc, char** argv) {
  Line line;
  CLI::App app("A software RDMA NIC: fabrics, their ports, and programs on them", "softnic");
  CLI::App* const run = add_run(app, line);
  CLI::App* const ls = add_ls(app, line);
  add_ctl(app, line);
  app.require_subcommand(1);
  // What comes after -- is the command's own and not for this parser.
  char** const end = argv + argc;
  char** const split = std::find(argv, end, std::string("--"));
  if (split != end) line.run.command.assign(split + 1, end);
  try {
    app.parse(static_cast<int>(split - argv), argv);
  } catch (const CLI::ParseError& error) {
    const std::string word = argc > 1 ? argv[1] : "-";
    if (app.get_subcommands().empty() && !word.starts_with('-')) return unknown_word(word);
    return app.exit(error) == 0 ? 0 : softnic::cli::kUsage;
  }
  if (run->parsed()) return start_run(line, run->remaining());
  if (ls->parsed()) return softnic::cli::ls(line.run.name);
  return softnic::cli::ctl(line.run.name, line.port, line.commands);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const std::exception& error) {  // ours do not throw; memory may run out in libraries
    std::fputs(error.what(), stderr);
    return softnic::cli::kFailed;
  }
}
