// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "common/base/clock.h"
#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"
#include "plugin/config/config.h"
#include "plugin/device/hca_filter.h"

namespace beeline::checks {
namespace {

struct Variable {
  std::string name;
  std::string value;
};

// The first of these variables that is set.
template <std::size_t N>
std::optional<Variable> first_set(const Environ& environ, const std::array<const char*, N>& names) {
  for (const char* const name : names) {
    if (const auto value = environ.get(name)) return Variable{name, std::string(*value)};
  }
  return {};
}

void check_timeout(const Config& config, const Environ& environ, Findings& found) {
  const std::optional<LongTimeout> timeout = long_timeout(config, environ);
  if (!timeout) return;
  found.add("timeout-long", {.subject = timeout->variable,
                             .fact = timeout->variable + "=" + std::to_string(config.timeout) +
                                     ": a device reports a dead path after " +
                                     std::to_string(timeout->least_ns / kNsPerSec) +
                                     " s, or up to four times that"});
}

void find_in_table(const Host& host, Findings& found) {
  const LoadedConfig loaded = load_config(host.environ);
  for (const Finding& finding : loaded.findings) {
    Seen seen = {.subject = finding.subject, .fact = finding.fact};
    if (finding.id == "setting-unknown") {
      seen.severity = finding.severity;
      found.add("setting-unknown", std::move(seen), {{"variable", finding.subject}});
    } else if (finding.id == "settings-without-effect") {
      found.add("settings-without-effect", std::move(seen));
    } else if (finding.severity == Severity::kWarning) {
      found.add("setting-refused", std::move(seen), {{"variable", finding.subject}});
    }
  }
  check_timeout(loaded.config, host.environ, found);
  if (!loaded.config.ib_disable) return;
  const auto variable =
      first_set(host.environ, std::array{"BEELINE_IB_DISABLE", "NCCL_IB_DISABLE"});
  if (!variable) return;
  found.add("turned-off", {.subject = variable->name, .fact = variable->name + " is set"},
            {{"variable", variable->name}});
}

// NCCL moves these transfers with its own code, which opens the NICs a second time.
void check_one_sided(const Environ& environ, Findings& found) {
  std::string names;
  for (const Environ::Variable& variable : environ.variables()) {
    const bool is_one_sided = variable.name.starts_with("NCCL_GIN_") ||
                              variable.name.starts_with("NCCL_RMA_") ||
                              variable.name == "NCCL_CTA_POLICY";
    const bool is_off = variable.name == "NCCL_GIN_ENABLE" || variable.name == "NCCL_CTA_POLICY"
                            ? variable.value == "0"
                            : variable.value.empty();
    if (is_one_sided && !is_off) append_item(names, variable.name);
  }
  if (names.empty()) return;
  found.add("one-sided-beside-plugin", {.subject = names, .fact = names + " is set"});
}

void check_gdr_level(const Environ& environ, Findings& found) {
  const auto level = environ.get("NCCL_NET_GDR_LEVEL");
  if (!level || level->find_first_not_of("0123456789") != std::string_view::npos) return;
  found.add("gdr-level-number",
            {.subject = "NCCL_NET_GDR_LEVEL", .fact = "NCCL_NET_GDR_LEVEL=" + std::string(*level)});
}

// NCCL reads NAME=VALUE lines from these files.
void check_files(const Host& host, Findings& found) {
  for (const std::string& file : nccl_files(host.environ)) {
    std::string names;
    for (const std::string& line : host.tree.lines(file)) {
      const std::size_t end = line.find('=');
      if (line.starts_with('#') || end == std::string::npos) continue;
      append_item(names, std::string_view(line).substr(0, end));
    }
    if (names.empty()) continue;
    found.add("nccl-conf",
              {.subject = file, .fact = names.insert(0, file + " sets "), .source = file},
              {{"file", file}});
  }
}

constexpr const char* kInterfaces = "/proc/net/dev";

// The interfaces of this network namespace: "  eth0: 1234 ...".
std::vector<std::string> interfaces_of(const Tree& tree) {
  std::vector<std::string> names;
  for (const std::string& line : tree.lines(kInterfaces)) {
    const std::size_t end = line.find(':');
    const std::size_t begin = line.find_first_not_of(' ');
    if (end != std::string::npos) names.push_back(line.substr(begin, end - begin));
  }
  return names;
}

void check_socket_interface(const Host& host, Findings& found) {
  const auto variable =
      first_set(host.environ, std::array{"BEELINE_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"});
  const std::vector<std::string> interfaces = interfaces_of(host.tree);
  if (!variable || interfaces.empty()) return;
  // The grammar is that of the device filter.
  const HcaFilter filter = parse_hca_filter(variable->value);
  std::string all;
  for (const std::string& interface : interfaces) {
    if (judge(filter, interface, 1).admitted) return;
    append_item(all, interface);
  }
  found.add("socket-interface-missing",
            {.subject = variable->name,
             .fact = variable->name + "=" + variable->value + ", but this host has " + all,
             .source = kInterfaces});
}

// The filter with the devices that it names, each as a whole name.
std::string exact_filter(const HcaFilter& filter) {
  std::string text = filter.mode == HcaFilter::Mode::kExclude ? "^=" : "=";
  for (const HcaRule& rule : filter.rules) {
    if (!text.ends_with('=')) text += ",";
    text += rule.name + (rule.port < 0 ? "" : ":" + std::to_string(rule.port));
  }
  return text;
}

// A name that is a device of this host, and the beginning of others that the filter does not name.
void check_prefixes(const Host& host, const Variable& variable, const HcaFilter& filter,
                    Findings& found) {
  if (filter.match == HcaFilter::Match::kExact) return;
  std::string more;
  for (const HcaRule& rule : filter.rules) {
    const bool is_device =
        std::ranges::find(host.devices, rule.name, &RdmaDevice::name) != host.devices.end();
    if (!is_device) continue;
    for (const RdmaDevice& device : host.devices) {
      const bool is_named =
          std::ranges::find(filter.rules, device.name, &HcaRule::name) != filter.rules.end();
      if (is_named || !device.name.starts_with(rule.name)) continue;
      append_item(more, device.name);
    }
  }
  if (more.empty()) return;
  found.add("device-filter-prefix",
            {.subject = variable.name,
             .fact = variable.name + "=" + variable.value + " also selects " + more},
            {{"variable", variable.name}, {"exact", exact_filter(filter)}});
}

}  // namespace

void check_settings(const Host& host, Findings& found) {
  find_in_table(host, found);
  check_one_sided(host.environ, found);
  check_gdr_level(host.environ, found);
  check_files(host, found);
  check_socket_interface(host, found);
}

void check_device_filter(const Host& host, Findings& found) {
  const auto variable = first_set(host.environ, std::array{"BEELINE_HCA", "NCCL_IB_HCA"});
  if (!variable || host.devices.empty()) return;
  const HcaFilter filter = parse_hca_filter(variable->value);
  check_prefixes(host, *variable, filter, found);
  std::string all;
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      if (judge(filter, device.name, port.number).admitted) return;
    }
    append_item(all, device.name);
  }
  found.add("device-filter-leaves-none",
            {.subject = variable->name,
             .fact = variable->name + "=" + variable->value + ", but this host has " + all,
             .source = "/sys/class/infiniband"},
            {{"variable", variable->name}});
}

}  // namespace beeline::checks
