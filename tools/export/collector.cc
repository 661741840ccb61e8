// SPDX-License-Identifier: Apache-2.0
#include "tools/export/collector.h"

#include <set>

#include "common/base/clock.h"

namespace beeline::exporter {

Outcome<void> Collector::look() {
  state_.processes = BL_TRY(pages::read_processes(source_.directory));
  state_.now_ns = now_ns();
  state_.totals.add(state_.processes.all);
  return {};
}

Outcome<std::string> Collector::text() {
  BL_TRY(look());
  std::set<std::string> used;  // ever, so that no series ends while its port is down
  for (const auto& [device, total] : state_.totals.by_port()) used.insert(device);
  state_.ports = read_ports(source_.tree, used);
  return text_of(state_);
}

}  // namespace beeline::exporter
