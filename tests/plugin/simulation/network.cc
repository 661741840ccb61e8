// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/network.h"

#include <algorithm>

namespace beeline::simulation {
namespace {

constexpr std::int64_t kUsualWay = 3 * kUs;
constexpr std::uint64_t kDrawsOfPorts = 0x1000;

}  // namespace

Network::Port Network::add_port(std::uint32_t mbps) {
  const auto number = static_cast<Port>(ports_.size());
  ports_.push_back({.mbps = mbps, .draws = Draws(seed_, kDrawsOfPorts + number)});
  return number;
}

void Network::set_fault(Port from, Port to, const LinkFault& fault) {
  if (fault.is_none()) {
    faults_.erase({from, to});
  } else {
    faults_[{from, to}] = fault;
  }
}

void Network::clear_faults() { faults_.clear(); }

Network::Arrivals Network::draw_arrivals(Port from, Port to, std::uint64_t bytes) {
  PortState& port = ports_[from];
  ++packets_;
  const auto took = static_cast<std::int64_t>(bytes * 8000 / port.mbps);
  port.busy_until_ns = std::max(port.busy_until_ns, agenda_.now()) + took;
  LinkFault fault;
  if (!faults_.empty()) {
    const auto found = faults_.find({from, to});
    if (found != faults_.end()) fault = found->second;
  }
  if (!port.is_up || port.draws.percent(fault.loss_percent)) {
    ++lost_;
    return {};
  }
  Arrivals arrivals;
  arrivals.count = port.draws.percent(fault.doubled_percent) ? 2 : 1;
  for (std::uint32_t i = 0; i < arrivals.count; ++i) {
    std::int64_t way = kUsualWay + port.draws.between(0, kUs / 2);
    if (fault.most_delay_ns != 0) way += port.draws.between(0, fault.most_delay_ns);
    arrivals.when_ns[i] = port.busy_until_ns + std::min(way, kLongestWay);
  }
  return arrivals;
}

}  // namespace beeline::simulation
