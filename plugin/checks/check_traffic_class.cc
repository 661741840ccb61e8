// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>

#include "plugin/checks/all_checks.h"

namespace beeline::checks {
namespace {

// DSCPs that vendors recommend for RoCE. Other small numbers may be meant as they are.
constexpr std::array kUsualDscps = {24, 26, 34, 46};

struct Chosen {
  std::string variable;
  int traffic_class = 0;
};

// Empty variable: none is set.
Chosen chosen_class(const Environ& environ) {
  for (const char* name : {"BEELINE_TC", "NCCL_IB_TC"}) {
    if (const auto text = environ.get(name)) {
      // As NCCL reads it: also 0x6a.
      return {name, static_cast<int>(std::strtol(std::string(*text).c_str(), nullptr, 0))};
    }
  }
  return {};
}

// "Global tclass=106" with the drivers of NVIDIA's OFED; -1: not set.
int class_of_adapter(const std::string& line) {
  const std::size_t at = line.find("tclass=");
  return at == std::string::npos ? -1 : std::atoi(line.c_str() + at + 7);
}

}  // namespace

void check_traffic_class(const Host& host, Findings& found) {
  const Chosen chosen = chosen_class(host.environ);
  if (chosen.variable.empty()) return;
  if (std::ranges::find(kUsualDscps, chosen.traffic_class) != kUsualDscps.end()) {
    found.add("traffic-class-is-dscp",
              {.subject = chosen.variable,
               .fact = chosen.variable + "=" + std::to_string(chosen.traffic_class) + " is DSCP " +
                       std::to_string(chosen.traffic_class / 4) + "; DSCP " +
                       std::to_string(chosen.traffic_class) + " is traffic class " +
                       std::to_string(chosen.traffic_class * 4)},
              {{"variable", chosen.variable}, {"class", std::to_string(chosen.traffic_class * 4)}});
  }
  for (const RdmaDevice& device : host.devices) {
    for (const Port& port : device.ports) {
      if (!port.is_wanted) continue;
      const std::string folder = device.folder + "/tc/" + std::to_string(port.number);
      const int traffic_class = class_of_adapter(host.tree.line(folder + "/traffic_class"));
      if (traffic_class < 0 || traffic_class == chosen.traffic_class) continue;
      found.add("traffic-class-differs",
                {.subject = label(device, port),
                 .fact = label(device, port) + " sends everything with traffic class " +
                         std::to_string(traffic_class) + ", but " + chosen.variable + "=" +
                         std::to_string(chosen.traffic_class),
                 .source = folder + "/traffic_class"},
                {{"class", std::to_string(chosen.traffic_class)}, {"folder", folder}});
    }
  }
}

}  // namespace beeline::checks
