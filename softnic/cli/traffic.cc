// SPDX-License-Identifier: Apache-2.0
// `softnic traffic`. The first line names the ports; each line after it has the time since the
// fabric was created, as in the fabric's log, and the bytes of each port.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "common/base/clock.h"
#include "softnic/cli/common.h"
#include "softnic/cli/stop_signals.h"
#include "softnic/cli/subcommands.h"
#include "softnic/fabric/port_ref.h"
#include "softnic/spec/units.h"

namespace softnic::cli {
namespace {

template <class Visit>
void for_each_port(const FabricHeader& header, Visit visit) {
  for (std::uint32_t device = 0; device < header.device_count; ++device)
    for (std::uint32_t port = 0; port < header.devices[device].port_count; ++port)
      visit(PortRef{device, port});
}

void print_names(const Fabric& fabric) {
  std::string line = "seconds";
  for_each_port(fabric.header(), [&](PortRef ref) { line += " " + port_name(fabric, ref); });
  fmt::print("{}\n", line);
}

void print_bytes(const FabricHeader& header) {
  const std::int64_t age = beeline::now_ns() - header.started_ns;
  std::string line = fmt::format("{:.6f}", static_cast<double>(age) / beeline::kNsPerSec);
  for_each_port(header, [&](PortRef ref) {
    line += fmt::format(" {}", header.devices[ref.device].ports[ref.port].sent_bytes.load());
  });
  fmt::print("{}\n", line);
}

// The counts would be 0 whatever is sent, so this is said.
void explain_zeros(const Fabric& fabric) {
  bool any_counts = false;
  const FabricHeader& header = fabric.header();
  for_each_port(header, [&](PortRef ref) {
    const PortRecord& port = header.devices[ref.device].ports[ref.port];
    any_counts |= port.rate_bytes_s.load() != 0 || port.latency_ns.load() != 0;
  });
  if (any_counts) return;
  report_error(
      "no port counts its bytes, because none has a rate or a latency; "
      "softnic ctl HOST/DEVICE rate=100G sets one");
}

bool has_ended(const Fabric& fabric) {
  return ::faccessat(fabric.files().fd(), "fabric", F_OK, 0) != 0;
}

void repeat(const Fabric& fabric, std::uint64_t every_ns, std::uint64_t duration_ns) {
  StopSignals signals;
  for (std::uint64_t at = 0; at <= duration_ns; at += every_ns) {
    if (!signals.wait_until(at) || has_ended(fabric)) return;
    print_bytes(fabric.header());
    std::fflush(stdout);  // a reader may follow
  }
}

}  // namespace

int traffic(const TrafficOptions& options) {
  const beeline::Outcome<Fabric> fabric = Fabric::open(fabric_name(options.name));
  if (!fabric) return report_error(fabric.error().text);
  if (options.every.empty()) {
    print_names(*fabric);
    explain_zeros(*fabric);
    print_bytes(fabric->header());
    return 0;
  }
  const beeline::Outcome<std::uint64_t> every = parse_duration_ns(options.every);
  if (!every) return report_error(every.error().text, kUsage);
  const beeline::Outcome<std::uint64_t> duration = parse_long_duration_ns(options.duration);
  if (!duration) return report_error(duration.error().text, kUsage);
  if (*every == 0) return report_error("traffic: --every must be longer than 0", kUsage);
  print_names(*fabric);
  explain_zeros(*fabric);
  repeat(*fabric, *every, *duration);
  return 0;
}

}  // namespace softnic::cli
