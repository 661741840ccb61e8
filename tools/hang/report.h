// SPDX-License-Identifier: Apache-2.0
//
// The output of `beeline hang`.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tools/cli/text_style.h"
#include "tools/hang/causes.h"
#include "tools/pages/jobs.h"

namespace beeline::hang {

// As in JSON: "no-receive".
const char* name_of(Reason reason);

struct JobReport {
  pages::Job job;
  Analysis analysis;  // of its processes
};
std::vector<JobReport> reports_of(std::vector<pages::Process> processes, std::int64_t now_ns,
                                  std::int64_t least_ns);

std::string text_of(std::span<const JobReport> reports, std::int64_t now_ns,
                    const tools::TextStyle& style);
// `collectives`: sentences about them, if NCCL was asked.
std::string json_of(std::span<const JobReport> reports, std::int64_t now_ns,
                    const std::optional<std::set<std::string>>& collectives = {});

}  // namespace beeline::hang
