// SPDX-License-Identifier: Apache-2.0
// Invented NUMA nodes and CPUs: each node is a package with four cores and 16 GiB. They let readers
// place devices; no thread can be bound to them.
#include <fmt/format.h>

#include <algorithm>

#include "softnic/spec/sysfs_parts.h"

namespace softnic {
namespace {

constexpr std::uint32_t kCpusPerNode = 4;
constexpr std::uint64_t kNodeMemoryKb = 16ull << 20;

struct CpuSpan {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

std::uint32_t cpu_count(const HostSpec& host) { return host.numa_nodes * kCpusPerNode; }

CpuSpan cpus_of(const HostSpec& host, int numa) {
  if (numa < 0) return {0, cpu_count(host)};
  return {static_cast<std::uint32_t>(numa) * kCpusPerNode, kCpusPerNode};
}

std::string span_list(CpuSpan span) {
  if (span.count == 1) return fmt::format("{}", span.first);
  return fmt::format("{}-{}", span.first, span.first + span.count - 1);
}

// The kernel's %*pb format: groups of 32 bits in hex; the highest group has only the digits it
// needs.
std::string span_map(const HostSpec& host, CpuSpan span) {
  const std::uint32_t total = cpu_count(host);
  const std::uint32_t groups = (total + 31) / 32;
  std::string text;
  for (std::uint32_t g = groups; g-- > 0;) {
    std::uint32_t bits = 0;
    for (std::uint32_t cpu = span.first; cpu < span.first + span.count; ++cpu)
      if (cpu / 32 == g) bits |= 1u << (cpu % 32);
    const std::uint32_t width = (std::min(32u, total - g * 32) + 3) / 4;
    text += fmt::format("{}{:0{}x}", text.empty() ? "" : ",", bits, width);
  }
  return text;
}

void write_cpu(SysfsWriter& out, const HostSpec& host, std::uint32_t cpu) {
  const std::string topology = fmt::format("devices/system/cpu/cpu{}/topology/", cpu);
  const std::uint32_t node = cpu / kCpusPerNode;
  const CpuSpan package = cpus_of(host, static_cast<int>(node));
  out.line(topology + "core_id", std::to_string(cpu % kCpusPerNode));
  out.line(topology + "physical_package_id", std::to_string(node));
  out.line(topology + "die_id", "0");
  for (const char* name : {"thread_siblings", "core_cpus"}) {
    out.line(topology + name, span_map(host, {cpu, 1}));
    out.line(topology + name + "_list", span_list({cpu, 1}));
  }
  for (const char* name : {"core_siblings", "package_cpus"}) {
    out.line(topology + name, span_map(host, package));
    out.line(topology + name + "_list", span_list(package));
  }
  out.link(fmt::format("devices/system/cpu/cpu{}/node{}", cpu, node),
           fmt::format("devices/system/node/node{}", node));
}

void write_node(SysfsWriter& out, const HostSpec& host, std::uint32_t node) {
  const std::string dir = fmt::format("devices/system/node/node{}/", node);
  const CpuSpan cpus = cpus_of(host, static_cast<int>(node));
  out.line(dir + "cpulist", span_list(cpus));
  out.line(dir + "cpumap", span_map(host, cpus));
  std::string distances;
  for (std::uint32_t other = 0; other < host.numa_nodes; ++other)
    distances += fmt::format("{}{}", other == 0 ? "" : " ", other == node ? 10 : 21);
  out.line(dir + "distance", distances);
  out.file(dir + "meminfo",
           fmt::format("Node {0} MemTotal:       {1:8} kB\nNode {0} MemFree:        {1:8} kB\n",
                       node, kNodeMemoryKb));
  for (std::uint32_t cpu = cpus.first; cpu < cpus.first + cpus.count; ++cpu)
    out.link(fmt::format("{}cpu{}", dir, cpu), fmt::format("devices/system/cpu/cpu{}", cpu));
}

}  // namespace

std::string cpu_list(const HostSpec& host, int numa) { return span_list(cpus_of(host, numa)); }

std::string cpu_map(const HostSpec& host, int numa) { return span_map(host, cpus_of(host, numa)); }

void write_system(SysfsWriter& out, const HostSpec& host) {
  for (const char* name : {"online", "possible", "present"})
    out.line(fmt::format("devices/system/cpu/{}", name), span_list({0, cpu_count(host)}));
  for (const char* name : {"online", "possible", "has_cpu", "has_memory", "has_normal_memory"})
    out.line(fmt::format("devices/system/node/{}", name), span_list({0, host.numa_nodes}));
  for (std::uint32_t node = 0; node < host.numa_nodes; ++node) write_node(out, host, node);
  for (std::uint32_t cpu = 0; cpu < cpu_count(host); ++cpu) write_cpu(out, host, cpu);
}

}  // namespace softnic
