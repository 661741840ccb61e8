// SPDX-License-Identifier: Apache-2.0
// The `softnic` program: its command line. Exit status 2 is a mistake in the command line, 1 a
// failure; `softnic run` otherwise ends with the status of its command.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "common/base/help_format.h"
#include "common/base/version.h"
#include "softnic/cli/common.h"
#include "softnic/cli/subcommands.h"
#include "softnic/spec/names.h"

namespace {

using softnic::cli::ChaosOptions;
using softnic::cli::RunOptions;
using softnic::cli::TrafficOptions;

// What the command line holds, for all subcommands.
struct Line {
  RunOptions run;
  std::string target;
  std::vector<std::string> commands;
  std::string script;
  ChaosOptions chaos;
  TrafficOptions traffic;
  bool follow = false;
};

constexpr const char* kNameHelp = "The fabric (SOFTNIC_FABRIC, or default)";

CLI::App* add_run(CLI::App& app, Line& line) {
  CLI::App* const run = app.add_subcommand("run", "Run a command on a host of a fabric");
  run->add_option("--name", line.run.name, "Fabric to create or join (SOFTNIC_FABRIC, or default)");
  run->add_option("--fabric", line.run.fabric_file, "TOML file that describes a new fabric");
  run->add_option("--host", line.run.host, "Host to run on (SOFTNIC_HOST, or the first)");
  run->add_option("--log", line.run.log_file, "Write the fabric's log there when the command ends");
  run->add_flag("--softgpu", line.run.softgpu, "Also load softgpu, a CUDA driver without a GPU");
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
  CLI::App* const ctl = app.add_subcommand("ctl", "Change a port or device of a running fabric");
  ctl->add_option("--name", line.run.name, kNameHelp);
  ctl->add_option("--script", line.script, "Commands with times, from a file or - (stdin)");
  ctl->add_option("target", line.target, "[host/]device[:port]");
  ctl->add_option("command", line.commands,
                  "Of a port: down, up, rate=200M|max, latency=50us, jitter=50us, loss=2.5%, "
                  "loss-sent=2.5%, loss-over=4096, blackhole, pause, pause=200ms, resume, "
                  "error=STATUS@N, corrupt@N, discard=BYTES@N, gid=3:fe80::1|none, pkey=0x8001, "
                  "lid=7, event=NAME, reset. Of a device: remove, return, refuse-err=on|off, "
                  "refuse-gpu=on|off, hide-events=on|off, command=100ms");
  return ctl;
}

CLI::App* add_log(CLI::App& app, Line& line) {
  CLI::App* const log = app.add_subcommand("log", "Print the log of a fabric");
  log->add_option("--name", line.run.name, kNameHelp);
  log->add_flag("--follow", line.follow, "Print new lines until the fabric ends");
  return log;
}

CLI::App* add_traffic(CLI::App& app, Line& line) {
  CLI::App* const traffic = app.add_subcommand(
      "traffic", "Show the bytes that each port with a rate or a latency has sent");
  traffic->add_option("--name", line.traffic.name, kNameHelp);
  CLI::Option* const every =
      traffic->add_option("--every", line.traffic.every, "Again after this time, such as 5ms");
  traffic->add_option("--for", line.traffic.duration, "How long, such as 3s")->needs(every);
  every->needs("--for");
  return traffic;
}

CLI::App* add_chaos(CLI::App& app, Line& line) {
  CLI::App* const chaos = app.add_subcommand("chaos", "Disturb a running fabric at random");
  chaos->add_option("--name", line.chaos.name, kNameHelp);
  chaos->add_option("--seed", line.chaos.seed, "The same seed gives the same disturbances");
  chaos->add_option("--for", line.chaos.duration, "How long, such as 10s")->required();
  chaos->add_option("--every", line.chaos.every, "Time between two disturbances, on average");
  chaos->add_option("--spare", line.chaos.spare, "A port to leave alone; may be repeated");
  chaos->add_option("--kinds", line.chaos.kinds,
                    "One or more of down, blackhole, pause, loss, jitter, error, event, remove, "
                    "refuse-err, corrupt, path-error, with commas between them");
  chaos->add_flag("--plan", line.chaos.plan_only, "Print the script instead of playing it");
  return chaos;
}

// "; did you mean ls?", or empty if none is similar.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string meant = softnic::nearest_name(word, known);
  return meant.empty() ? "" : "; did you mean " + meant + "?";
}

// Without these three, the parser would only say that something is missing or was not expected.
std::string no_subcommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* const one : app.get_subcommands({})) known.push_back(one->get_name());
  if (word.empty() || word.starts_with('-')) {
    return "name a subcommand: " + softnic::list_text(known) + "; softnic --help describes them";
  }
  const std::string meant = did_you_mean(word, known);
  return "\"" + word + "\" is not a subcommand" + (meant.empty() ? "; the" : meant + " The") +
         " subcommands are " + softnic::list_text(known);
}

std::string no_option(const CLI::App& command, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* const one : command.get_options()) {
    for (const std::string& name : one->get_lnames()) known.push_back("--" + name);
  }
  const std::string meant = did_you_mean(option, known);
  return command.get_name() + " has no option " + option +
         (meant.empty() ? "; its options are " + softnic::list_text(known) : meant);
}

int report_mistake(const CLI::App& app, const CLI::ParseError& error, const std::string& word) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  if (named.empty()) {
    return softnic::cli::report_error(no_subcommand(app, word), softnic::cli::kUsage);
  }
  const CLI::App& command = *named.front();
  for (const std::string& extra : command.remaining()) {
    if (!extra.starts_with('-')) continue;
    return softnic::cli::report_error(no_option(command, extra), softnic::cli::kUsage);
  }
  return softnic::cli::report_error(
      command.get_name() + ": " + error.what() + "; see softnic " + command.get_name() + " --help",
      softnic::cli::kUsage);
}

int start_run(const Line& line, const CLI::App& command) {
  const std::vector<std::string> extras = command.remaining();
  if (!extras.empty() && extras.front().starts_with("--")) {
    return softnic::cli::report_error(no_option(command, extras.front()), softnic::cli::kUsage);
  }
  if (!extras.empty())
    return softnic::cli::report_error("run: \"" + extras.front() +
                                          "\" is not an option; put -- before " +
                                          "the command: softnic run -- COMMAND...",
                                      softnic::cli::kUsage);
  if (line.run.command.empty())
    return softnic::cli::report_error("run: no command; write softnic run -- COMMAND...",
                                      softnic::cli::kUsage);
  return softnic::cli::run(line.run);
}

int start_ctl(const Line& line) {
  if (!line.script.empty() && line.target.empty())
    return softnic::cli::ctl_script(line.run.name, line.script);
  if (!line.script.empty() || line.commands.empty())
    return softnic::cli::report_error(
        "ctl: give a target and its commands, or --script FILE: softnic ctl h0/softnic0 down",
        softnic::cli::kUsage);
  return softnic::cli::ctl(line.run.name, line.target, line.commands);
}

int dispatch(int argc, char** argv) {
  Line line;
  CLI::App app("A software RDMA NIC: fabrics, their ports, and programs on them", "softnic");
  app.set_version_flag("--version", std::string("softnic ") + beeline::kBuild,
                       "Print the version and exit");
  app.formatter(std::make_shared<beeline::HelpFormat>());  // of the subcommands, too
  CLI::App* const run = add_run(app, line);
  CLI::App* const ls = add_ls(app, line);
  add_ctl(app, line);
  CLI::App* const log = add_log(app, line);
  CLI::App* const chaos = add_chaos(app, line);
  CLI::App* const traffic = add_traffic(app, line);
  app.require_subcommand(1);
  // Arguments after -- belong to the command and not to this parser.
  char** const end = argv + argc;
  char** const split = std::find(argv, end, std::string("--"));
  if (split != end) line.run.command.assign(split + 1, end);
  try {
    app.parse(static_cast<int>(split - argv), argv);
  } catch (const CLI::Success& asked) {  // for the help or the version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return report_mistake(app, error, argc > 1 ? argv[1] : "");
  }
  if (run->parsed()) return start_run(line, *run);
  if (ls->parsed()) return softnic::cli::ls(line.run.name);
  if (log->parsed()) return softnic::cli::log(line.run.name, line.follow);
  if (traffic->parsed()) return softnic::cli::traffic(line.traffic);
  if (chaos->parsed()) return softnic::cli::chaos(line.chaos);
  return start_ctl(line);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const std::exception& error) {  // from libraries, such as std::bad_alloc
    std::fputs(error.what(), stderr);
    return softnic::cli::kFailed;
  }
}
