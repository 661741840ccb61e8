// SPDX-License-Identifier: Apache-2.0
//
// The three ways in which the metrics leave this process.
#pragma once

#include <optional>
#include <string>

#include "common/base/problem.h"
#include "tools/export/collector.h"

namespace beeline::exporter {

Outcome<void> print_metrics(const Source& source);

// Replaces FOLDER/beeline.prom: once, or every so many seconds until SIGTERM or SIGINT, when it
// removes the file.
Outcome<void> write_textfile(const Source& source, const std::string& folder,
                             std::optional<double> seconds);

// Until SIGTERM or SIGINT.
Outcome<void> serve_metrics(const Source& source, int port);

}  // namespace beeline::exporter
