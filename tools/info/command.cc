// SPDX-License-Identifier: Apache-2.0
#include "tools/info/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "plugin/config/config.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/text_width.h"
#include "tools/doctor/loaded_plugin.h"
#include "tools/nccl/loader.h"
#include "tools/perf/devices.h"
#include "tools/perf/net.h"

namespace beeline::info {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string plugin;
  bool all = false;
  bool json = false;
};

// Global because the plugin's log function has no argument for them.
std::vector<std::string> warnings;

void keep_warning(ncclDebugLogLevel level, unsigned long /*flags*/, const char* /*file*/,
                  int /*line*/, const char* format, ...) {
  if (level != NCCL_LOG_WARN) return;
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  warnings.emplace_back(text);
}

// What NCCL loads in this environment, if it is not the plugin that is shown.
void add_other_plugin(const Environ& environ) {
  const auto named = environ.get("NCCL_NET_PLUGIN");
  if (!named) return;
  std::string said = "NCCL loads no plugin";
  for (const auto& one : doctor::load_plugins(environ).tries) {
    said = one.error.empty() ? "NCCL loads another file, " + one.file : one.error;
    if (!one.error.empty()) continue;
    if (!one.is_other) return;
    break;
  }
  warnings.push_back(fmt::format("NCCL_NET_PLUGIN={}: {}", *named, said));
}

struct Found {
  std::string file = {};  // of the plugin; empty: it was not found
  std::string problem = {};
  std::vector<perf::Device> devices = {};
};

Found look(const Options& options) {
  Found found;
  auto loaded = nccl::load_plugin(options.plugin, 0);
  if (!loaded) return {.problem = loaded.error().text};
  perf::Net net{{*std::move(loaded)}};
  found.file = net.file;
  const Outcome<bool> started = perf::init_plugin(net, keep_warning);
  if (!started) {
    found.problem = started.error().text;
    return found;
  }
  auto devices = perf::list_devices(net);
  if (devices) {
    found.devices = *std::move(devices);
  } else {
    found.problem = "it has no device here; beeline doctor says what is missing";
  }
  return found;
}

void print_wrapped(const std::string& text) {
  fmt::print("  {}\n", tools::wrapped(text, 2, tools::output_width()));
}

std::string gbits(const perf::Device& device) {
  return fmt::format("{:g} Gbit/s", device.props.speed / 1000.0);
}

Json json_of(const Found& found, const std::vector<ParamValue>& values,
             const std::string& protocol) {
  Json devices = Json::array();
  for (const perf::Device& device : found.devices) {
    devices.push_back({{"index", device.index},
                       {"name", device.name},
                       {"speed_mbps", device.props.speed},
                       {"memory", perf::pointer_kinds(device.props.ptrSupport)},
                       {"pci", device.props.pciPath == nullptr ? "" : device.props.pciPath}});
  }
  Json parameters = Json::array();
  for (const ParamValue& value : values) {
    parameters.push_back({{"name", std::string(kParamPrefix) + std::string(value.name)},
                          {"value", value.value},
                          {"default", value.default_value},
                          {"source", value.source.empty() ? "default" : value.source}});
  }
  Json made;
  made["version"] = std::string(kBuild);
  made["protocol"] = protocol;
  made["plugin"] = found.file;
  made["problem"] = found.problem;
  made["warnings"] = warnings;
  made["devices"] = std::move(devices);
  made["parameters"] = std::move(parameters);
  return made;
}

void print_text(const Found& found, const std::vector<ParamValue>& values,
                const std::string& version, bool all) {
  const std::size_t width = tools::terminal_width();
  fmt::print("{}\nPlugin: {}\n", tools::fitted(version, width),
             found.file.empty() ? "not found" : found.file);
  for (const std::string& warning : warnings) print_wrapped(warning);
  if (!found.problem.empty()) print_wrapped(found.problem);
  if (!found.devices.empty()) fmt::print("\nDevices that NCCL gets:\n");
  for (const perf::Device& device : found.devices) {
    const std::string line =
        fmt::format("  {} {}  {}, memory {}\n", device.index, device.name, gbits(device),
                    perf::pointer_kinds(device.props.ptrSupport));
    fmt::print("{}", tools::fitted(line, width));
  }
  const auto is_shown = [&](const ParamValue& one) { return all || !one.source.empty(); };
  const auto shown = std::ranges::count_if(values, is_shown);
  fmt::print("\nParameters{}:\n", all ? "" : " that are set");
  for (const ParamValue& one : values) {
    if (!is_shown(one)) continue;
    const std::string from =
        one.source.empty() ? ""
                           : fmt::format("  (from {}; default {})", one.source,
                                         one.default_value.empty() ? "empty" : one.default_value);
    const std::string line = fmt::format("  {}{} = {}{}\n", kParamPrefix, one.name,
                                         one.value.empty() ? "(empty)" : one.value, from);
    fmt::print("{}", tools::fitted(line, width));
  }
  if (shown == 0) fmt::print("  none\n");
  if (!all) {
    fmt::print("  {} more have their defaults: beeline info --all\n",
               static_cast<std::ptrdiff_t>(values.size()) - shown);
  }
}

int run(const Options& options, const std::string& version, const std::string& protocol) {
  const Environ environ = Environ::of_process();
  if (options.plugin.empty()) add_other_plugin(environ);
  const Found found = look(options);
  const std::vector<ParamValue> values = effective_values(environ);
  if (options.json) {
    fmt::print("{}\n", json_of(found, values, protocol).dump(2));
  } else {
    print_text(found, values, version, options.all);
  }
  return found.problem.empty() ? 0 : tools::kFailed;
}

}  // namespace

void add_command(tools::CommandLine& line, const std::string& version,
                 const std::string& protocol) {
  auto options = std::make_shared<Options>();
  tools::Subcommand info =
      line.add("info", "Show the version, the devices, and the parameters that are set",
               [options, version, protocol] { return run(*options, version, protocol); });
  info.add("--plugin", options->plugin, "A file, or X for libnccl-net-X.so (Beeline's)");
  info.add_flag("--all", options->all, "Show all parameters, also those with their defaults");
  info.add_flag("--json", options->json, "Print all of it as JSON");
  info.set_footer(
      "The parameters are those of this command's environment. NCCL adds the lines of nccl.conf. "
      "Exit status: 0, or 1 if the plugin was not found or finds no device.");
}

}  // namespace beeline::info
