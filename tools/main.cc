// SPDX-License-Identifier: Apache-2.0
//
// The `beeline` command. Exit status 2 is a mistake in the command line or in what it names, 1 is a
// failure or wrong data.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "tools/outcome.h"
#include "tools/perf/command.h"
#include "tools/topo/command.h"

namespace {

int dispatch(int argc, char** argv) {
  CLI::App app("Tools around the Beeline network plugin", "beeline");
  app.require_subcommand(1);
  const std::vector<std::pair<const char*, std::function<int()>>> commands = {
      {"perf", beeline::perf::add_command(app)},
      {"topo", beeline::topo::add_command(app)},
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : beeline::tools::kUsage;
  }
  for (const auto& [name, run] : commands) {
    if (app.got_subcommand(name)) return run();
  }
  return beeline::tools::kUsage;  // not reached: one is required
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const std::exception& error) {  // ours do not throw; memory may run out in libraries
    std::fputs(error.what(), stderr);
    return beeline::tools::kFailed;
  }
}
