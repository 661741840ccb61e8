// SPDX-License-Identifier: Apache-2.0
// `softnic ls`: reads fabrics without joining them. Removes those whose processes are all dead.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/base/terminal_text.h"
#include "softnic/cli/common.h"
#include "softnic/cli/faults_text.h"
#include "softnic/cli/subcommands.h"
#include "softnic/fabric/fabric.h"
#include "softnic/spec/names.h"
#include "softnic/spec/units.h"

namespace softnic::cli {
namespace {

std::uint32_t gid_count(const PortRecord& port) {
  return static_cast<std::uint32_t>(
      std::count_if(std::begin(port.gids), std::end(port.gids),
                    [](const GidRecord& gid) { return gid.state.load() != 0; }));
}

std::vector<std::string> port_row(const std::string& host, const DeviceRecord& device,
                                  std::uint32_t index) {
  const PortRecord& port = device.ports[index];
  const bool ethernet = port.link_layer == LinkLayer::kEthernet;
  const std::string network = port.network;
  return {host,
          fmt::format("{}:{}", device.name, index + 1),
          (port.faults.load() & kFaultDown) != 0 ? "down" : "up",
          ethernet ? "roce" : "infiniband",
          fmt::format("{} Gb/s", port.gbps),
          rate_text(port.rate_bytes_s.load()),
          duration_text(port.latency_ns.load()),
          faults_text(device, port),
          std::to_string(gid_count(port)),
          ethernet ? port.netdev : fmt::format("lid {}", port.lid.load()),
          network.empty() ? "-" : network};
}

std::string ports_text(const FabricHeader& header) {
  std::vector<std::vector<std::string>> rows{{"HOST", "PORT", "STATE", "LINK", "SPEED", "RATE",
                                              "LATENCY", "FAULTS", "GIDS", "ADDRESS", "NETWORK"}};
  for (std::uint32_t d = 0; d < header.device_count; ++d) {
    const DeviceRecord& device = header.devices[d];
    for (std::uint32_t p = 0; p < device.port_count; ++p)
      rows.push_back(port_row(header.hosts[device.host].name, device, p));
  }
  return columns(rows, "  ");
}

std::string command_name(std::uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  return std::getline(file, name) ? name : "?";
}

std::string processes_text(const FabricHeader& header, const Participants& participants) {
  if (participants.slots.empty()) return "  no process has opened a device\n";
  std::vector<std::vector<std::string>> rows{{"SLOT", "PID", "HOST", "COMMAND"}};
  for (const std::uint32_t slot : participants.slots) {
    const std::uint32_t pid = header.slots[slot].pid.load();
    const std::uint32_t host = header.slots[slot].host.load();
    rows.push_back({std::to_string(slot), std::to_string(pid),
                    host < header.host_count ? header.hosts[host].name : "?", command_name(pid)});
  }
  return columns(rows, "  ");
}

std::string count_text(std::uint32_t count, const char* thing, const char* plural_end = "s") {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : plural_end);
}

void say(const std::string& text) {
  fmt::print("{}", beeline::fitted_to_terminal(text, STDOUT_FILENO));
}

void show(const Fabric& fabric) {
  const FabricHeader& header = fabric.header();
  const Participants participants = find_participants(fabric);
  const std::string hazards = hazards_text(header.hazards);
  say(fmt::format("fabric {}: {}, {}, clock scale {}, seed {}{}, held by {}\n{}{}", fabric.name(),
                  count_text(header.host_count, "host"), count_text(header.device_count, "device"),
                  header.clock_scale, header.seed, hazards.empty() ? "" : ", hazards " + hazards,
                  count_text(participants.holders, "softnic run"), ports_text(header),
                  processes_text(header, participants)));
}

bool has_fabric(const std::string& name) {
  const std::vector<std::string> fabrics = list_fabrics();
  return std::find(fabrics.begin(), fabrics.end(), name) != fabrics.end();
}

int show_or_remove(const std::string& name) {
  if (clean_up_fabric(name)) {
    say(fmt::format("fabric {}: all its processes have ended; it was removed\n", name));
    return 0;
  }
  const beeline::Outcome<Fabric> fabric = Fabric::open(name);
  if (!fabric)
    return has_fabric(name) ? report_error(fabric.error().text) : 0;  // it may have ended by now
  show(*fabric);
  return 0;
}

}  // namespace

int ls(const std::string& name) {
  const std::vector<std::string> fabrics = list_fabrics();
  if (fabrics.empty()) {
    fmt::print("no fabric: `softnic run -- COMMAND` creates one\n");
    return 0;
  }
  if (!name.empty()) {
    if (has_fabric(name)) return show_or_remove(name);
    say(fmt::format("no fabric {}; the fabrics are {}\n", name, list_text(fabrics)));
    return 0;
  }
  int worst = 0;
  for (const std::string& fabric : fabrics) worst = std::max(worst, show_or_remove(fabric));
  return worst;
}

}  // namespace softnic::cli
