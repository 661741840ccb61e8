// SPDX-License-Identifier: Apache-2.0
#include "tools/export/metrics.h"

#include <algorithm>

#include "common/base/version.h"
#include "tools/export/exposition.h"
#include "tools/export/hang_metrics.h"
#include "tools/export/open_metrics.h"
#include "tools/export/total_metrics.h"

namespace beeline::exporter {
namespace {

std::uint64_t count_lives(const State& state, pages::Life life) {
  return static_cast<std::uint64_t>(
      std::ranges::count(state.processes.all, life, &pages::Process::life));
}

void add_host(Exposition& out, const State& state) {
  out.begin({.name = "beeline_info", .help = "The build of this command."});
  out.add({{"version", kVersion}, {"revision", kRevision}, {"protocol", state.protocol}},
          std::uint64_t{1});
  out.begin({.name = "beeline_processes",
             .help = "Processes of this host that have a statistics page. The page of one that has "
                     "ended stays for a while if it was killed, or if a connection had failed."});
  out.add({{"state", "running"}}, count_lives(state, pages::Life::kRuns));
  out.add({{"state", "stopped"}}, count_lives(state, pages::Life::kStopped));
  out.add({{"state", "ended"}}, count_lives(state, pages::Life::kEnded));
  out.begin({.name = "beeline_unreadable_pages",
             .help = "Statistics pages that this user may not read, or of other versions of "
                     "Beeline. The connections of their processes are not in these metrics."});
  out.add({}, std::uint64_t{state.processes.left_out.of_running()});
}

void add_ports(Exposition& out, const State& state) {
  out.begin({.name = "beeline_port_up", .help = "1 if the port is active, 0 if it is not."});
  for (const PortReading& port : state.ports) {
    out.add({{"device", port.device}}, std::uint64_t{port.is_up ? 1U : 0U});
  }
  out.begin({.name = "beeline_port_rate_bytes_per_second", .help = "The rate of the link."});
  for (const PortReading& port : state.ports) {
    if (port.rate) out.add({{"device", port.device}}, *port.rate);
  }
  for (const PortCounter& counter : port_counters()) {
    out.begin({.name = counter.name, .kind = Kind::kCounter, .help = counter.help});
    for (const PortReading& port : state.ports) {
      const auto value = port.values.find(&counter);
      if (value != port.values.end()) out.add({{"device", port.device}}, value->second);
    }
  }
}

}  // namespace

std::string text_of(const State& state) {
  Exposition out(state.host);
  add_host(out, state);
  add_open_connections(out, state);
  add_hang_causes(out, state);
  add_totals(out, state);
  add_ports(out, state);
  return out.text();
}

}  // namespace beeline::exporter
