// SPDX-License-Identifier: Apache-2.0
#include "tools/top/rates.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace beeline::top {
namespace {

using Earlier = std::map<std::pair<std::int64_t, std::uint64_t>, const SlotView*>;

Earlier slots_of(const Look& look) {
  Earlier slots;
  for (const pages::Process& process : look.processes) {
    if (process.life == pages::Life::kEnded) continue;
    for (const SlotView& slot : process.connections) slots[{process.pid, slot.id}] = &slot;
  }
  return slots;
}

double grown(const SlotView& before, const SlotView& now, Counter counter) {
  return now[counter] < before[counter] ? 0 : static_cast<double>(now[counter] - before[counter]);
}

// The part of a connection's bytes that each path carries. The page has the paths' own counts only
// as of the last second, so they are not rates, but they tell how the bytes are divided.
std::vector<double> shares(const SlotView* before, const SlotView& now) {
  std::vector<double> parts;
  for (std::size_t i = 0; i < now.paths.size(); ++i) {
    const bool is_known = before != nullptr && i < before->paths.size() &&
                          before->paths[i].bytes <= now.paths[i].bytes;
    parts.push_back(
        static_cast<double>(now.paths[i].bytes - (is_known ? before->paths[i].bytes : 0)));
  }
  double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (sum == 0) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = static_cast<double>(now.paths[i].bytes);
      sum += parts[i];
    }
  }
  for (double& part : parts) part = sum == 0 ? 1 / static_cast<double>(parts.size()) : part / sum;
  return parts;
}

Rail& rail_of(std::vector<Rail>& rails, const std::string& device) {
  const auto found = std::ranges::find(rails, device, &Rail::device);
  if (found != rails.end()) return *found;
  return rails.emplace_back(Rail{.device = device});
}

void add_paths(std::vector<Rail>& rails, const SlotView* before, const ConnectionRate& now) {
  const std::vector<double> parts = shares(before, now.slot);
  const std::vector<bool> is_port_down = own_ports_down(now.slot);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PathView& path = now.slot.paths[i];
    Rail& rail = rail_of(rails, path.device);
    ++rail.paths;
    if (path.health == PathHealth::kDown) {
      ++rail.out_of_use;
      if (is_port_down[i]) ++rail.down;
    }
    (now.slot.role == SlotRole::kSend ? rail.send : rail.receive) += parts[i] * now.bytes;
    Rail& own = rail_of(rails, path.own_device);
    own.failures += path.failures;
    if (path.is_moved()) own.stand_ins.insert(path.device);
  }
}

}  // namespace

std::vector<ProcessRate> rates_between(const Look& first, Look second) {
  const Earlier earlier = slots_of(first);
  const double seconds = std::max(static_cast<double>(second.at_ns - first.at_ns) / 1e9, 1e-3);
  std::vector<ProcessRate> rates;
  for (pages::Process& process : second.processes) {
    if (process.life == pages::Life::kEnded) continue;
    ProcessRate& rate = rates.emplace_back();
    for (SlotView& slot : process.connections) {
      const auto found = earlier.find({process.pid, slot.id});
      const SlotView* const before = found == earlier.end() ? nullptr : found->second;
      ConnectionRate connection = {.slot = std::move(slot)};
      if (before != nullptr) {
        connection.bytes = grown(*before, connection.slot, Counter::kBytes) / seconds;
        connection.messages = grown(*before, connection.slot, Counter::kMessages) / seconds;
      }
      if (connection.slot.waits_for != Wait::kNothing) ++rate.waiting;
      add_paths(rate.rails, before, connection);
      rate.connections.push_back(std::move(connection));
    }
    process.connections.clear();
    rate.process = std::move(process);
    std::ranges::sort(rate.rails, {}, &Rail::device);
  }
  return rates;
}

}  // namespace beeline::top
