// SPDX-License-Identifier: Apache-2.0
//
// The `beeline` command. Exit status 2 is a mistake in the command line or in what it names, 1 is a
// failure or wrong data.
#include <exception>
#include <string>

#include "common/base/version.h"
#include "include/beeline/stats_page.h"
#include "plugin/wire/message_version.h"
#include "tools/bundle/command.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_status.h"
#include "tools/doctor/command.h"
#include "tools/env/command.h"
#include "tools/export/command.h"
#include "tools/hang/command.h"
#include "tools/info/command.h"
#include "tools/nccl/table.h"
#include "tools/perf/command.h"
#include "tools/replay/command.h"
#include "tools/top/command.h"
#include "tools/topo/command.h"

namespace {

// The log of the plugin begins with the words of the first line. docs/releases.md says what each
// version is for.
std::string version_text() {
  using beeline::nccl::kNewestAbi, beeline::nccl::kOldestAbi;
  return std::string("Beeline ") + beeline::kBuild + "\n" + "NCCL network plugin interface v" +
         std::to_string(kOldestAbi) + " to v" + std::to_string(kNewestAbi) + "\n" +
         "Protocol between two processes: " + text(beeline::wire::kOurVersions) +
         "; both ends of a connection need a version in common\n" + "Statistics page: version " +
         std::to_string(BEELINE_STATS_VERSION) +
         "; commands read the pages of plugins with the same version";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    beeline::tools::CommandLine line("beeline", "Tools for Beeline, a network plugin for NCCL",
                                     version_text());
    const std::string protocol = numbers(beeline::wire::kOurVersions);
    beeline::perf::add_command(line);
    beeline::top::add_command(line);
    beeline::topo::add_command(line);
    beeline::doctor::add_command(line);
    beeline::hang::add_command(line);
    beeline::replay::add_command(line);
    beeline::bundle::add_command(line);
    beeline::env::add_command(line);
    beeline::info::add_command(line, version_text(), protocol);
    beeline::exporter::add_command(line, protocol);
    line.add_descriptions(std::string("Beeline ") + beeline::kBuild);
    return line.run(argc, argv);
  } catch (const std::exception& error) {  // e.g. out of memory in a library
    return beeline::tools::print_error(beeline::tools::describe(error));
  }
}
