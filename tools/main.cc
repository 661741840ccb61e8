// SPDX-License-Identifier: Apache-2.0
//
// The `beeline` command. Exit status 2 is a mistake in the command line or in what it names, 1 is a
// failure or wrong data.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <functional>

#include "tools/outcome.h"
#include "tools/perf/command.h"

namespace {

int dispatch(int argc, char** argv) {
  CLI::App app("Tools around the Beeline network plugin", "beeline");
  app.require_subcommand(1);
  const std::function<int()> perf = beeline::perf::add_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : beeline::tools::kUsage;
  }
  return perf();
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
