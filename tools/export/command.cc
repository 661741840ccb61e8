// SPDX-License-Identifier: Apache-2.0
#include "tools/export/command.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "tools/cli/exit_status.h"
#include "tools/cli/host_name.h"
#include "tools/export/deliver.h"

namespace beeline::exporter {
namespace {

struct Options {
  std::string directory = pages::usual_directory();
  std::string host = tools::name_of_this_host();
  std::string textfile = {};
  std::optional<double> seconds = {};
  std::optional<int> http = {};
};

Outcome<void> check(const Options& options) {
  if (options.http && !options.textfile.empty()) {
    return fail("--http and --textfile: choose one of them, or start the command twice");
  }
  if (options.http && (*options.http < 0 || *options.http > 65535)) {
    return fail("--http: write a port, 1 to 65535, or 0 for a free one");
  }
  if (options.seconds && options.textfile.empty()) {
    return fail("--seconds: only with --textfile, which it repeats");
  }
  if (options.seconds && !(*options.seconds >= 0.1 && *options.seconds <= 3600)) {
    return fail("--seconds: write 0.1 to 3600");
  }
  return {};
}

checks::Tree tree_of_this_host() {
  const char* const root = std::getenv("BEELINE_SYSFS_ROOT");
  return checks::Tree("", root == nullptr ? "" : root);
}

Outcome<void> deliver(const Options& options, const std::string& protocol) {
  BL_TRY(check(options));
  const Source source = {.directory = options.directory,
                         .tree = tree_of_this_host(),
                         .host = options.host,
                         .protocol = protocol};
  if (options.http) return serve_metrics(source, *options.http);
  if (!options.textfile.empty()) return write_textfile(source, options.textfile, options.seconds);
  return print_metrics(source);
}

int run(const Options& options, const std::string& protocol) {
  const Outcome<void> done = deliver(options, protocol);
  return done ? 0 : tools::print_error(done.error(), tools::kUsage);
}

}  // namespace

void add_command(tools::CommandLine& line, const std::string& protocol) {
  const auto options = std::make_shared<Options>();
  tools::Subcommand command =
      line.add("export", "Give the statistics of this host's processes to Prometheus",
               [options, protocol] { return run(*options, protocol); });
  command.add("--http", options->http,
              "Serve http://127.0.0.1:PORT/metrics until SIGTERM; 0 takes a free port");
  command.add("--textfile", options->textfile,
              "Write FOLDER/beeline.prom, for the textfile collector of node_exporter", "FOLDER");
  command.add("--seconds", options->seconds,
              "Write it so often until SIGTERM, and then remove it (default: write it once)");
  command.add("--host", options->host, "The value of the label host (default: this host's name)",
              "NAME");
  command.add_pages_folder(options->directory);
  command.set_footer(
      "Without --http and --textfile it prints the metrics once. It reads the statistics pages of "
      "the processes, and does not touch the processes. Exit status: 0 success, 2 a mistake in "
      "the command line or in what it names.");
}

}  // namespace beeline::exporter
