// SPDX-License-Identifier: Apache-2.0
#include "tools/top/json.h"

#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "include/beeline/stats_page.h"

namespace beeline::top {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Rail& rail) {
  return {{"device", rail.device},
          {"paths", rail.paths},
          {"paths_out_of_use", rail.out_of_use},
          {"port_is_down", rail.down != 0},
          {"stand_ins", rail.stand_ins},
          {"failures", rail.failures},
          {"sent_bytes_per_second", rail.send},
          {"received_bytes_per_second", rail.receive}};
}

Json json_of(const ConnectionRate& connection, std::int64_t now_ns) {
  const SlotView& slot = connection.slot;
  Json json = {{"role", beeline_stats_role_text(static_cast<std::uint32_t>(slot.role))},
               {"device", slot.device},
               {"peer_host", slot.peer_host},
               {"peer_pid", slot.peer_pid},
               {"peer_device", slot.peer_device},
               {"bytes_per_second", connection.bytes},
               {"messages_per_second", connection.messages}};
  if (slot.waits_for == Wait::kNothing) return json;
  const std::int64_t waited_ns = now_ns - static_cast<std::int64_t>(slot.waits_since_ns);
  json["waits_for"] = beeline_stats_wait_text(static_cast<std::uint32_t>(slot.waits_for));
  json["waits_seconds"] = static_cast<double>(waited_ns) / kNsPerSec;
  return json;
}

}  // namespace

std::string json_of(std::span<const ProcessRate> rates, std::int64_t now_ns) {
  Json document = {{"processes", Json::array()}};
  for (const ProcessRate& rate : rates) {
    Json process = {{"pid", rate.process.pid}, {"host", rate.process.host}};
    if (rate.process.rank) process["rank"] = *rate.process.rank;
    process["is_stopped"] = rate.process.life == pages::Life::kStopped;
    process["rails"] = Json::array();
    for (const Rail& rail : rate.rails) process["rails"].push_back(json_of(rail));
    process["connections"] = Json::array();
    for (const ConnectionRate& connection : rate.connections)
      process["connections"].push_back(json_of(connection, now_ns));
    document["processes"].push_back(std::move(process));
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace beeline::top
