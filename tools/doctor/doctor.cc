// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "common/base/host.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/text_style.h"
#include "tools/cli/text_width.h"
#include "tools/doctor/compare.h"
#include "tools/doctor/loaded_plugin.h"
#include "tools/doctor/record.h"
#include "tools/doctor/recorded_host.h"
#include "tools/doctor/report.h"
#include "tools/doctor/several_hosts.h"
#include "tools/doctor/this_host.h"

namespace beeline::doctor {
namespace {

using checks::CounterSamples;
using checks::Tree;

int write(const Options& options, const std::string& host, const std::vector<Finding>& findings) {
  const std::string text = options.json
                               ? json_report(host, findings)
                               : text_report(host, findings, options.all, tools::output_style());
  const Outcome<void> written = tools::write_output(std::string(tools::kStdout), text);
  if (!written) return tools::print_error(written.error());
  return has_problem(findings) ? tools::kFailed : 0;
}

// Processes are forked here, so there is no thread that shows the time.
checks::PluginView plugins_of(const Environ& environ) {
  tools::ProgressLine line;
  line.show("# loading the plugins that NCCL would load");
  return load_plugins(environ);
}

CounterSamples samples_of(CounterWatch& watch, const Options& options) {
  const tools::Progress progress(
      fmt::format("watching the error counters of the ports for {} s", options.seconds));
  return watch.finish();
}

std::vector<Finding> findings_of_this_host(const Options& options) {
  const Environ environ = Environ::of_process();
  const Tree tree = this_tree(environ);
  CounterWatch watch(tree, options.seconds);
  checks::Host host = checks::read_host(tree, environ, this_verbs(environ));
  host.plugins = plugins_of(host.environ);
  return checks::check_host(host, samples_of(watch, options));
}

// Calls `take` with a recorded host, while its files are there. Returns what it returns.
template <class Take>
auto with_recorded_host(const std::string& path, Take&& take)
    -> Outcome<decltype(take(std::declval<const checks::Host&>(), std::vector<Finding>()))> {
  const RecordedHost recorded = BL_TRY(open_recorded_host(path));
  const Tree& tree = recorded.tree();
  checks::Host host =
      checks::read_host(tree, recorded.environ(), checks::parse_verbs(tree.read(kVerbs).text));
  host.plugins = checks::parse_plugins(tree.read(kPlugins).text);
  const CounterSamples samples = {.first = checks::read_counters(tree),
                                  .second = checks::read_counters(tree, kSecondReading)};
  return take(host, checks::check_host(host, samples));
}

int look_at_recorded_host(const Options& options) {
  const Outcome<int> status = with_recorded_host(
      options.root, [&options](const checks::Host&, const std::vector<Finding>& findings) {
        return write(options, options.root, findings);
      });
  return status ? *status : tools::print_error(status.error(), tools::kUsage);
}

// The name of the file without its folder and its suffix.
std::string name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  return name.empty() ? path : name;
}

int compare(const Options& options) {
  std::vector<Examined> hosts;
  for (const std::string& path : options.compare) {
    Outcome<Examined> examined =
        with_recorded_host(path, [&path](const checks::Host& host, std::vector<Finding> findings) {
          return Examined{
              .name = name_of(path), .card = card_of(host), .findings = std::move(findings)};
        });
    if (!examined) return tools::print_error(examined.error(), tools::kUsage);
    hosts.push_back(*std::move(examined));
  }
  const Outcome<void> written = tools::write_output(
      std::string(tools::kStdout),
      options.json ? compare_json(hosts) : compare_text(hosts, tools::terminal_width()));
  if (!written) return tools::print_error(written.error());
  return do_differ(hosts) ? tools::kFailed : 0;
}

int record(const Options& options) {
  const Environ environ = Environ::of_process();
  const Tree tree = this_tree(environ);
  CounterWatch watch(tree, options.seconds);
  const checks::VerbsView verbs = this_verbs(environ);
  // The files of NCCL may name the plugin.
  const checks::PluginView plugins = plugins_of(checks::read_host(tree, environ, verbs).environ);
  const std::string text =
      record_of(tree, environ, verbs, plugins, samples_of(watch, options), options.with_addresses);
  const Outcome<void> written = tools::write_output(options.record, text);
  if (!written) return tools::print_error(written.error());
  if (options.record == tools::kStdout) return 0;
  fmt::print(stderr, "wrote {}{}\n", options.record,
             options.with_addresses ? "" : "; its addresses are replaced");
  return 0;
}

}  // namespace

int run(const Options& options) {
  if (options.list) {
    const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
    const Outcome<void> written = tools::write_output(
        std::string(tools::kStdout), options.json  ? kinds_json()
                                     : is_terminal ? kinds_text(tools::output_style())
                                                   : kinds_table());
    return written ? 0 : tools::print_error(written.error());
  }
  if (options.serve || looks_at_several_hosts(options)) return look_at_several_hosts(options);
  if (!options.compare.empty()) return compare(options);
  if (!options.record.empty()) return record(options);
  if (!options.root.empty()) return look_at_recorded_host(options);
  return write(options, host_name(), findings_of_this_host(options));
}

}  // namespace beeline::doctor
