// SPDX-License-Identifier: Apache-2.0
//
// Reads the pages and the ports of this host.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/problem.h"
#include "plugin/checks/tree.h"
#include "tools/export/metrics.h"

namespace beeline::exporter {

struct Source {
  std::string directory;  // of the pages
  checks::Tree tree;      // with /sys
  std::string host;
  std::string protocol;  // the versions that this build speaks: "2-3"
};

// Lifecycle: as long as the totals have to last. Threads: one.
class Collector {
 public:
  Collector(Source source, Mode mode)
      : source_(std::move(source)),
        state_({.host = source_.host, .protocol = source_.protocol, .mode = mode}) {}

  // Adds what has grown to the totals. What a process does after the last look before its end is
  // lost, so the looks have to be frequent.
  Outcome<void> look();
  // All metrics, as of now.
  Outcome<std::string> text();

 private:
  Source source_;
  State state_;
};

}  // namespace beeline::exporter
