// SPDX-License-Identifier: Apache-2.0
// `softnic chaos`: executes a plan (faults/chaos_plan.h) and resets the ports.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "softnic/cli/common.h"
#include "softnic/cli/stop_signals.h"
#include "softnic/cli/subcommands.h"
#include "softnic/fabric/device_presence.h"
#include "softnic/faults/chaos_plan.h"
#include "softnic/faults/script.h"
#include "softnic/spec/units.h"

namespace softnic::cli {
namespace {

using beeline::fail;

constexpr std::uint64_t kMostDisturbances = 1'000'000;  // the plan is made before it is played

beeline::Outcome<std::vector<PortRef>> find_all(const Fabric& fabric,
                                                const std::vector<std::string>& names) {
  std::vector<PortRef> ports;
  ports.reserve(names.size());
  for (const std::string& name : names) ports.push_back(BL_TRY(find_port(fabric, name)));
  return ports;
}

bool contains(const std::vector<PortRef>& ports, PortRef wanted) {
  return std::any_of(ports.begin(), ports.end(), [&](PortRef port) {
    return port.device == wanted.device && port.port == wanted.port;
  });
}

std::vector<PortRef> ports_but(const Fabric& fabric, const std::vector<PortRef>& spared) {
  std::vector<PortRef> ports;
  const FabricHeader& header = fabric.header();
  for (std::uint32_t device = 0; device < header.device_count; ++device)
    for (std::uint32_t port = 0; port < header.devices[device].port_count; ++port)
      if (!contains(spared, {device, port})) ports.push_back({device, port});
  return ports;
}

beeline::Outcome<ChaosRequest> read_request(const Fabric& fabric, const ChaosOptions& options,
                                            const std::vector<PortRef>& spared) {
  ChaosRequest request;
  request.seed = options.seed;
  request.duration_ns = BL_TRY(parse_long_duration_ns(options.duration));
  request.every_ns = BL_TRY(parse_duration_ns(options.every));
  if (request.every_ns == 0 || request.duration_ns / request.every_ns > kMostDisturbances)
    return fail(
        fmt::format("a disturbance every {} for {} is more than {} of them: choose a longer "
                    "--every or a shorter --for",
                    options.every, options.duration, kMostDisturbances));
  request.kinds = BL_TRY(parse_disturbances(options.kinds));
  for (const PortRef port : ports_but(fabric, spared)) {
    const bool whole = std::none_of(spared.begin(), spared.end(),
                                    [&](PortRef other) { return other.device == port.device; });
    request.ports.push_back({port_name(fabric, port), device_name(fabric, port.device), whole});
  }
  if (request.ports.empty())
    return fail(std::string("all ports are spared, so there is none to disturb"));
  return request;
}

void clean_up(const Fabric& fabric, const std::vector<PortRef>& ports) {
  for (const PortRef port : ports) {
    if (is_removed(fabric.header().devices[port.device]))
      apply(fabric, port, PortCommand{.kind = PortCommand::Kind::kReturn});
    apply(fabric, port, PortCommand{.kind = PortCommand::Kind::kReset});
  }
}

std::uint64_t whole_milliseconds(std::uint64_t ns) {
  constexpr std::uint64_t kMs = 1'000'000;
  return (ns + kMs / 2) / kMs * kMs;
}

bool is_fabric_present(const Fabric& fabric) {
  return ::faccessat(fabric.files().fd(), "fabric", F_OK, 0) == 0;
}

int play_chaos(const Fabric& fabric, const std::vector<TimedCommand>& script,
               const ChaosRequest& request, const std::vector<PortRef>& ports) {
  StopSignals signals;
  const auto wait = [&](std::uint64_t at_ns) {
    return signals.wait_until(at_ns) && is_fabric_present(fabric);
  };
  const std::size_t given = play(fabric, script, wait);
  (void)wait(request.duration_ns);
  const bool ended = !is_fabric_present(fabric);
  if (!ended) clean_up(fabric, ports);
  const std::string why = ended                   ? ", stopped by the end of the fabric"
                          : signals.signal() == 0 ? ""
                                                  : ", stopped by " + signals.signal_name();
  fmt::print("chaos: seed {}: {} of {} commands in {}{}; all ports reset\n", request.seed, given,
             script.size(), duration_text(whole_milliseconds(signals.elapsed_ns())), why);
  return 0;
}

}  // namespace

int chaos(const ChaosOptions& options) {
  const beeline::Outcome<Fabric> fabric = Fabric::open(fabric_name(options.name));
  if (!fabric) return report_error(fabric.error().text);
  const beeline::Outcome<std::vector<PortRef>> spared = find_all(*fabric, options.spare);
  if (!spared) return report_error(spared.error().text);
  const beeline::Outcome<ChaosRequest> request = read_request(*fabric, options, *spared);
  if (!request) return report_error(request.error().text, kUsage);
  const std::string plan = script_text(plan_chaos(*request));
  if (options.plan_only) {
    fmt::print("{}", plan);
    return 0;
  }
  const auto script = read_script(*fabric, plan, "plan");
  if (!script) return report_error(script.error().text);
  return play_chaos(*fabric, *script, *request, ports_but(*fabric, *spared));
}

}  // namespace softnic::cli
