// SPDX-License-Identifier: Apache-2.0
#include "tools/export/total_metrics.h"

#include <string_view>

namespace beeline::exporter {
namespace {

// In a total of one look, connections are missing whose process has ended or whose place in the
// page was given to another one.
std::string of_totals(const State& state, const char* help) {
  return state.mode == Mode::kRepeats ? std::string(help)
                                      : std::string(help) +
                                            " This is one look at the processes that run now: the "
                                            "number falls when one ends.";
}

void add_by_device(Exposition& out, const State& state, std::string_view name, const char* help,
                   std::uint64_t ConnectionTotal::*value) {
  out.begin({.name = name, .kind = Kind::kCounter, .help = of_totals(state, help)});
  for (const auto& [key, total] : state.totals.by_device()) {
    out.add({{"nccl_device", key.first}, {"direction", key.second}}, total.*value);
  }
}

void add_by_connection(Exposition& out, const State& state) {
  add_by_device(out, state, "beeline_bytes_total",
                "Bytes of messages, by the device that NCCL has chosen.", &ConnectionTotal::bytes);
  add_by_device(out, state, "beeline_messages_total",
                "Messages, by the device that NCCL has chosen.", &ConnectionTotal::messages);
  add_by_device(out, state, "beeline_errors_total", "Connections that have failed with an error.",
                &ConnectionTotal::errors);
  add_by_device(out, state, "beeline_truncations_total",
                "Messages that were longer than the buffer of their receive.",
                &ConnectionTotal::truncations);
  out.begin({.name = "beeline_slots_refused_total",
             .kind = Kind::kCounter,
             .help = of_totals(state,
                               "Connections that found no place in the statistics page of their "
                               "process, and are not in these metrics.")});
  out.add({}, state.totals.slots_refused());
}

void add_by_path(Exposition& out, const State& state) {
  const auto& ports = state.totals.by_port();
  out.begin({.name = "beeline_path_bytes_total",
             .kind = Kind::kCounter,
             .help = of_totals(state, "Bytes of messages by this port, as of the last second.")});
  for (const auto& [device, total] : ports) {
    for (const auto& [direction, bytes] : total.bytes) {
      out.add({{"device", device}, {"direction", direction}}, bytes);
    }
  }
  out.begin({.name = "beeline_path_failures_total",
             .kind = Kind::kCounter,
             .help = of_totals(state, "How often paths of this port have failed.")});
  for (const auto& [device, total] : ports) out.add({{"device", device}}, total.failures);
}

}  // namespace

void add_totals(Exposition& out, const State& state) {
  add_by_connection(out, state);
  add_by_path(out, state);
}

}  // namespace beeline::exporter
