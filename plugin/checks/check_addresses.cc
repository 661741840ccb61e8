// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/rails.h"
#include "plugin/checks/words.h"

namespace beeline::checks {
namespace {

constexpr const char* kIpv4 = "/proc/sys/net/ipv4/conf/";
constexpr std::string_view kLinkLocalRoute = "0000FEA9";  // 169.254.0.0

// `severity`: in place of the table's, for NICs that jobs need not reach others over.
void check_table(const RdmaDevice& device, const Port& port, std::optional<Severity> severity,
                 Findings& found) {
  const std::string name = label(device, port);
  const std::string path = port.folder + "/gids";
  if (port.gids.empty()) {
    return found.add("gid-missing",
                     {.subject = name,
                      .fact = name + " has no address that this process can see",
                      .source = path,
                      .severity = severity},
                     {{"netdev", port.netdev}});
  }
  if (std::ranges::none_of(port.gids, &GidRow::is_v2)) {
    return found.add("gid-only-v1",
                     {.subject = name,
                      .fact = "all addresses of " + name + " are of RoCE v1",
                      .source = port.folder + "/gid_attrs/types",
                      .severity = severity},
                     {{"device", device.name}, {"port", std::to_string(port.number)}});
  }
  if (std::ranges::all_of(port.gids, &GidRow::is_link_local)) {
    found.add("gid-only-link-local",
              {.subject = name,
               .fact = name + " has only link-local addresses: " + address_text(port.gids.front()),
               .source = path,
               .severity = severity},
              {{"netdev", port.netdev}});
  }
}

// Why the entry of the table cannot be used; empty if it can.
std::string why_unusable(const Port& port, int index) {
  const auto gid = std::ranges::find(port.gids, index, &GidRow::index);
  if (gid == port.gids.end()) return "is empty";
  if (!gid->is_v2()) return "is of RoCE v1 (" + address_text(*gid) + ")";
  if (gid->is_link_local()) return "is link-local (" + address_text(*gid) + ")";
  return {};
}

void check_chosen_index(const Host& host, const RdmaDevice& device, const Port& port,
                        std::optional<Severity> severity, Findings& found) {
  const auto text = host.environ.get("NCCL_IB_GID_INDEX");
  int index = -1;
  if (!text ||
      std::from_chars(text->data(), text->data() + text->size(), index).ec != std::errc()) {
    return;
  }
  if (index < 0 || port.gids.empty()) return;
  const std::string why = why_unusable(port, index);
  if (why.empty()) return;
  std::string usable;
  for (const GidRow& gid : port.gids) {
    if (!gid.is_v2() || gid.is_link_local()) continue;
    usable += (usable.empty() ? "; usable: " : ", ") + std::to_string(gid.index) + " (" +
              address_text(gid) + ")";
  }
  const std::string name = label(device, port);
  found.add("gid-index-unusable", {.subject = name,
                                   .fact = "NCCL_IB_GID_INDEX=" + std::string(*text) +
                                           ": that entry of " + name + " " + why + usable,
                                   .source = port.folder + "/gids/" + std::to_string(index),
                                   .severity = severity});
}

// The connected networks of each interface: "0001A8C0/00FFFFFF", as the kernel writes them.
std::map<std::string, std::set<std::string>> interfaces_by_subnet(const Host& host) {
  std::set<std::string> rdma;
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      if (port.is_wanted && port.is_active() && !port.netdev.empty()) rdma.insert(port.netdev);
    }
  }
  std::map<std::string, std::set<std::string>> subnets;
  for (const std::string& line : host.tree.lines("/proc/net/route")) {
    // Iface Destination Gateway Flags RefCnt Use Metric Mask
    const std::vector<std::string> cell = split(line);
    if (cell.size() < 8) continue;
    const bool is_direct = cell[2] == "00000000" && cell[1].size() == 8 && cell[1] != "00000000" &&
                           cell[1] != kLinkLocalRoute && cell[7] != "FFFFFFFF";
    if (is_direct && rdma.contains(cell[0])) subnets[cell[1] + "/" + cell[7]].insert(cell[0]);
  }
  return subnets;
}

// The interfaces with each address that is not link-local. Two devices of a bond have one
// interface.
std::map<std::string, std::set<std::string>> interfaces_by_address(const Host& host) {
  std::map<std::string, std::set<std::string>> interfaces;
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      if (!port.is_wanted || !port.is_active() || !port.is_ethernet) continue;
      for (const GidRow& gid : port.gids) {
        if (gid.is_link_local() || gid.netdev.empty()) continue;
        interfaces[address_text(gid)].insert(gid.netdev);
      }
    }
  }
  return interfaces;
}

// For these three the kernel uses the larger of the value for the interface and that for all.
bool has_value(const Tree& tree, const std::string& interface, const char* name, int wanted) {
  const auto value = [&](const std::string& whose) {
    const std::string text = tree.line(kIpv4 + whose + "/" + name);
    return text.empty() ? -1 : std::atoi(text.c_str());
  };
  return std::max(value(interface), value("all")) >= wanted;
}

bool answers_for_itself(const Tree& tree, const std::string& interface) {
  return has_value(tree, interface, "arp_ignore", 1) &&
         has_value(tree, interface, "arp_announce", 2) &&
         // 1, the strict check, drops what arrives at another interface than the one of the route.
         !(has_value(tree, interface, "rp_filter", 1) &&
           !has_value(tree, interface, "rp_filter", 2));
}

std::string dotted(const std::string& hex) {
  std::string text;
  for (int at = 6; at >= 0; at -= 2) {
    text += (text.empty() ? "" : ".") +
            std::to_string(
                std::strtoul(hex.substr(static_cast<std::size_t>(at), 2).c_str(), nullptr, 16));
  }
  return text;
}

std::string field(const std::vector<std::string>& lines, std::string_view name) {
  for (const std::string& line : lines) {
    if (line.starts_with(name)) return line.substr(name.size());
  }
  return {};
}

void check_bond(const Tree& tree, const std::string& bond, Findings& found) {
  const std::string path = "/proc/net/bonding/" + bond;
  const std::vector<std::string> lines = tree.lines(path);
  const std::string mode = field(lines, "Bonding Mode: ");
  const std::string policy = field(lines, "Transmit Hash Policy: ");
  if (mode.find("active-backup") != std::string::npos) {
    found.add("bond-uses-one-port",
              {.subject = bond,
               .fact = "the bond " + bond + " has a spare port: " + mode,
               .source = path,
               .fix = "use 802.3ad with xmit_hash_policy layer3+4, or no bond at all: Beeline uses "
                      "both ports as rails"});
  } else if (policy.starts_with("layer2")) {
    found.add("bond-uses-one-port",
              {.subject = bond,
               .fact = "the bond " + bond + " chooses a port by addresses only: " + policy,
               .source = path},
              {{"count", "4"}});
  }
}

}  // namespace

void check_gids(const Host& host, Findings& found) {
  const std::set<std::string> rails = rails_of(host);
  for (const RdmaDevice& device : host.devices) {
    if (device.is_iwarp) continue;
    for (const Port& port : device.ports) {
      if (!port.is_wanted || !port.is_active() || !port.is_ethernet) continue;
      std::optional<Severity> severity;
      if (!rails.contains(device.name)) severity = Severity::kNote;
      check_table(device, port, severity, found);
      check_chosen_index(host, device, port, severity, found);
    }
  }
}

void check_subnets(const Host& host, Findings& found) {
  std::set<std::string> doubled;
  for (const auto& [address, interfaces] : interfaces_by_address(host)) {
    if (interfaces.size() < 2) continue;
    doubled.insert(interfaces.begin(), interfaces.end());
    const std::string names = listed(interfaces);
    found.add("address-twice",
              {.subject = names,
               .fact = std::string(names).append(" have the same address, ").append(address),
               .source = "/sys/class/infiniband/*/ports/*/gids"});
  }
  for (const auto& [subnet, interfaces] : interfaces_by_subnet(host)) {
    // Equal addresses are in one subnet: that is said above, with the cause.
    if (interfaces.size() < 2 || std::ranges::includes(doubled, interfaces)) continue;
    if (std::ranges::all_of(interfaces, [&](const std::string& interface) {
          return answers_for_itself(host.tree, interface);
        })) {
      continue;
    }
    const std::string names = listed(interfaces);
    found.add("interfaces-share-a-subnet",
              {.subject = names,
               .fact = names + " are all in the subnet of " + dotted(subnet.substr(0, 8)),
               .source = "/proc/net/route"});
  }
}

void check_bonds(const Host& host, Findings& found) {
  std::set<std::string> bonds;
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      if (port.is_wanted) bonds.insert(port.netdev);
    }
  }
  for (const std::string& bond : host.tree.names("/proc/net/bonding")) {
    if (bonds.contains(bond)) check_bond(host.tree, bond, found);
  }
}

}  // namespace beeline::checks
