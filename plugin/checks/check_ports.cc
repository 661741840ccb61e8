// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/rails.h"
#include "plugin/checks/words.h"
#include "topology/read/sysfs_text.h"

namespace beeline::checks {
namespace {

// As the kernel does, for the largest headers that a RoCE packet can have.
constexpr int kMostHeaders = 96;
constexpr int kFullPayload = 4096;
// More often than a reboot of the switch and a change of the cable explain.
constexpr int kManyLosses = 5;

std::string after_colon(const std::string& text) {
  const std::size_t at = text.find(": ");
  return at == std::string::npos ? text : text.substr(at + 2);
}

std::string gigabits(std::uint32_t mbps) {
  std::string text = std::to_string(mbps / 1000);
  if (mbps % 1000 != 0) text += "." + std::to_string(mbps % 1000 / 100);
  return text + " Gb/s";
}

// Whether another port in the same slot is active: an adapter with two ports often has one cable.
bool has_active_sibling(const Host& host, const RdmaDevice& device) {
  const auto slot_of = [](const RdmaDevice& one) { return one.pci.substr(0, one.pci.rfind('.')); };
  return std::ranges::any_of(host.devices, [&](const RdmaDevice& other) {
    return !device.pci.empty() && slot_of(other) == slot_of(device) &&
           std::ranges::any_of(other.ports, &Port::is_active);
  });
}

void check_state(const Host& host, const RdmaDevice& device, const Port& port, bool is_rail,
                 Findings& found) {
  if (port.is_active()) return;
  const std::string name = label(device, port);
  if (port.state.empty()) {
    return found.add_unknown("port-not-active",
                             {.subject = name,
                              .fact = "the state of " + name + " cannot be read: " +
                                      host.tree.read(port.folder + "/state").error,
                              .source = port.folder + "/state"});
  }
  const bool has_link = port.phys_state.starts_with("5:");
  Seen seen = {.subject = name,
               .fact = name + " is " + after_colon(port.state) +
                       (port.phys_state.empty() ? "" : " (" + after_colon(port.phys_state) + ")"),
               .source = port.folder + "/state"};
  if (!port.is_ethernet && has_link) {
    return found.add("no-subnet-manager", std::move(seen));
  }
  if (port.phys_state.starts_with("3:")) seen.fix = "the port is switched off: switch it on";
  if (!is_rail || has_active_sibling(host, device)) seen.severity = Severity::kNote;
  found.add("port-not-active", std::move(seen), {{"netdev", port.netdev}});
}

void check_losses(const Host& host, const RdmaDevice& device, const Port& port, Findings& found) {
  const std::string path = port.folder + "/counters/link_downed";
  const int losses = topology::parse_int(host.tree.line(path)).value_or(0);
  if (losses < kManyLosses) return;
  const std::string name = label(device, port);
  found.add("link-lost-often", {.subject = name,
                                .fact = name + " has lost its link " + std::to_string(losses) +
                                        " times since the counter was reset",
                                .source = path});
}

// Devices of one model on one kind of link should have one speed. If the name of the board is not
// known, NICs for other traffic may be another model with the same chip.
void check_speeds(const Host& host, const std::set<std::string>& rails, Findings& found) {
  std::map<std::string, std::uint32_t> fastest;
  const auto each_port = [&host, &rails](auto&& take) {
    for (const RdmaDevice& device : host.devices) {
      if (device.is_soft() || device.model.empty()) continue;
      if (device.board.empty() && !rails.contains(device.name)) continue;
      const std::string model = device.kind();
      for (const Port& port : device.ports) {
        if (port.is_wanted && port.is_active() && port.speed_mbps != 0) {
          take(device, port, model + (port.is_ethernet ? " Ethernet" : " InfiniBand"));
        }
      }
    }
  };
  each_port([&](const RdmaDevice&, const Port& port, const std::string& kind) {
    fastest[kind] = std::max(fastest[kind], port.speed_mbps);
  });
  each_port([&](const RdmaDevice& device, const Port& port, const std::string& kind) {
    if (port.speed_mbps == fastest[kind]) return;
    const std::string name = label(device, port);
    found.add("port-slow",
              {.subject = name,
               .fact = name + " has " + gigabits(port.speed_mbps) +
                       ", but another port of the same model has " + gigabits(fastest[kind]),
               .source = port.folder + "/rate"},
              {{"device", device.pci}});
  });
}

// The bytes that a RoCE packet carries over an interface with that MTU.
int payload_of(int mtu) noexcept {
  for (int payload = kFullPayload; payload > 256; payload /= 2) {
    if (mtu - kMostHeaders >= payload) return payload;
  }
  return 256;
}

}  // namespace

void check_ports(const Host& host, Findings& found) {
  const std::set<std::string> rails = rails_of(host);
  bool is_state_known = true;
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      is_state_known = is_state_known && !port.state.empty();
      if (!port.is_wanted) continue;
      check_state(host, device, port, rails.contains(device.name), found);
      check_losses(host, device, port, found);
    }
  }
  check_speeds(host, rails, found);
  if (!host.devices.empty() && !host.has_active_port() && is_state_known) {
    found.add("no-active-port", {.fact = "no port of this host is active",
                                 .source = "/sys/class/infiniband/*/ports/*/state"});
  }
}

void check_mtus(const Host& host, Findings& found) {
  const std::set<std::string> rails = rails_of(host);
  const auto is_judged = [](const RdmaDevice& device, const Port& port) {
    return port.is_wanted && port.is_active() && port.is_ethernet && port.mtu != 0 &&
           !device.is_iwarp;
  };
  int largest = 0;
  std::string others;  // the NICs for other traffic with a small MTU
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      if (!is_judged(device, port)) continue;
      if (rails.contains(device.name)) {
        largest = std::max(largest, payload_of(port.mtu));
      } else if (payload_of(port.mtu) < kFullPayload) {
        append_item(others, device.name, ",");
      }
    }
  }
  const bool is_chosen = host.environ.get("BEELINE_HCA") || host.environ.get("NCCL_IB_HCA");
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      const int payload = payload_of(port.mtu);
      if (!is_judged(device, port) || payload == kFullPayload) continue;
      const std::string name = label(device, port);
      Seen seen = {.subject = name,
                   .fact = "the MTU of " + port.netdev + " (" + name + ") is " +
                           std::to_string(port.mtu) + ", so an RDMA packet carries " +
                           std::to_string(payload) + " bytes",
                   .source = "/sys/class/net/" + port.netdev + "/mtu"};
      if (!rails.contains(device.name)) {
        found.add("nic-for-other-traffic", std::move(seen), {{"devices", is_chosen ? "" : others}});
      } else if (payload == largest) {
        found.add("mtu-small", std::move(seen));
      } else {
        seen.fact += ", but over another RDMA interface " + std::to_string(largest);
        found.add("mtu-differs", std::move(seen));
      }
    }
  }
}

}  // namespace beeline::checks
