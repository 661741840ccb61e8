// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"
#include "topology/read/sysfs_text.h"

namespace beeline::checks {
namespace {

// The processors of a list such as "0-31,64-95".
std::set<int> processors_in(const std::string& list) {
  std::set<int> all;
  if (!topology::is_cpu_list(list)) return all;
  for (const std::string& part : split(list, ",")) {
    if (const auto ends = topology::ends_of_list(part)) {
      for (int cpu = ends->first; cpu <= ends->second; ++cpu) all.insert(cpu);
    }
  }
  return all;
}

std::string allowed_list(const Tree& tree) {
  constexpr std::string_view kName = "Cpus_allowed_list:\t";
  for (const std::string& line : tree.lines("/proc/self/status")) {
    if (line.starts_with(kName)) return line.substr(kName.size());
  }
  return {};
}

void check_distance(const Host& host, const std::string& allowed, Findings& found) {
  const std::set<int> own = processors_in(allowed);
  std::string near;
  for (const RdmaDevice& device : host.devices) {
    if (device.pci.empty()) continue;
    const std::string list =
        host.tree.line("/sys/bus/pci/devices/" + device.pci + "/local_cpulist");
    const std::set<int> local = processors_in(list);
    if (local.empty()) return;
    if (std::ranges::any_of(local, [&](int cpu) { return own.contains(cpu); })) return;
    if (near.empty()) near = list;
  }
  if (near.empty() || own.empty()) return;
  found.add(
      "processors-far",
      {.fact = "this process may use the processors " + allowed + ", none of which is near a NIC",
       .source = "/proc/self/status"},
      {{"near", near}});
}

}  // namespace

void check_processors(const Host& host, Findings& found) {
  const std::string allowed = allowed_list(host.tree);
  const std::set<int> online = processors_in(host.tree.line("/sys/devices/system/cpu/online"));
  if (processors_in(allowed).size() == 1 && online.size() > 1) {
    found.add("processors-few",
              {.fact = "this process may use processor " + allowed + " only, of " +
                       std::to_string(online.size()),
               .source = "/proc/self/status"},
              {{"last", std::to_string(*online.rbegin())}});
  } else {
    check_distance(host, allowed, found);
  }
  const std::string governor_path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
  const std::string governor = host.tree.line(governor_path);
  if (!governor.empty() && governor != "performance") {
    found.add("clock-governor",
              {.fact = "the clock of the processors is governed by '" + governor + "'",
               .source = governor_path});
  }
  const std::string balancing = "/proc/sys/kernel/numa_balancing";
  if (host.tree.has("/sys/devices/system/node/node1") && host.tree.line(balancing) == "1") {
    found.add("numa-balancing",
              {.fact = "the kernel balances memory between NUMA nodes", .source = balancing});
  }
}

}  // namespace beeline::checks
