// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/port_counters.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"

namespace beeline::checks {
namespace {

// Reading hw_counters may cost a command of the firmware for each file, so only these are read.
constexpr std::array<std::string_view, 8> kLinkErrors = {
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "port_rcv_remote_physical_errors",
};
// The counters of mlx5, then those of bnxt_re, then those of rxe.
constexpr std::array<std::string_view, 11> kTransportErrors = {
    "packet_seq_err",       "local_ack_timeout_err", "req_transport_retries_exceeded",
    "rx_icrc_encapsulated", "seq_err_naks_rcvd",     "to_retransmits",
    "max_retry_exceeded",   "rx_roce_discards",      "rcvd_seq_err",
    "completer_retry_err",  "retry_exceeded_err",
};

std::optional<std::uint64_t> number_in(const Tree& tree, const std::string& path) {
  const std::string text = tree.line(path);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// A counter that is smaller than before was reset, unless it has 32 bits and was about to start
// anew.
std::uint64_t growth_of(std::uint64_t before, std::uint64_t after) noexcept {
  constexpr std::uint64_t kMost32 = 0xffffffff;
  if (after >= before) return after - before;
  const bool has_started_anew = before <= kMost32 && kMost32 - before < kMost32 / 16;
  return has_started_anew ? kMost32 - before + 1 + after : 0;
}

template <class Names>
void read_group(const Tree& tree, const std::string& above, const std::string& folder,
                const Names& names, Counters& counters) {
  for (const std::string_view name : names) {
    const std::string path = folder + "/" + std::string(name);
    if (const auto value = number_in(tree, above + path)) counters[path] = *value;
  }
}

}  // namespace

Counters read_counters(const Tree& tree, const std::string& above) {
  Counters counters;
  const std::string devices = "/sys/class/infiniband";
  for (const std::string& device : tree.names(devices)) {
    const std::string ports = below(devices, device) + "/ports";
    for (const std::string& port : tree.names(ports)) {
      const std::string folder = below(ports, port);
      read_group(tree, above, folder + "/counters", kLinkErrors, counters);
      read_group(tree, above, folder + "/hw_counters", kTransportErrors, counters);
    }
  }
  return counters;
}

void check_counters(const Host& host, const CounterSamples& samples, Findings& found) {
  if (samples.second.empty()) {
    if (!samples.first.empty()) {
      found.add_unknown("port-errors", {.fact = "the counters were read once only"});
    }
    return;
  }
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      if (!port.is_wanted) continue;
      std::string grown;
      for (const auto& [path, before] : samples.first) {
        const auto after = samples.second.find(path);
        if (!path.starts_with(port.folder + "/") || after == samples.second.end()) continue;
        const std::uint64_t growth = growth_of(before, after->second);
        if (growth == 0) continue;
        append_item(grown, std::string_view(path).substr(path.rfind('/') + 1));
        grown += " by ";
        grown += std::to_string(growth);
      }
      if (grown.empty()) continue;
      const std::string name = label(device, port);
      found.add(
          "port-errors",
          {.subject = name,
           .fact = grown.insert(0, "while the doctor looked, counters of " + name + " grew: "),
           .source = port.folder},
          {{"folder", port.folder}});
    }
  }
}

}  // namespace beeline::checks
