// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/lasting.h"

#include <fmt/format.h>

#include <utility>

namespace beeline::hang {
namespace {

// The same process may be blamed for another reason at another moment.
std::string key_of(const Cause& cause, const pages::Job& job) {
  if (!cause.process) return job.name + "\n" + name_of(cause.reason);
  const pages::Process& process = job.processes[*cause.process];
  return fmt::format("{}\n{} {}", job.name, process.host, process.pid);
}

}  // namespace

void LastingCauses::add(std::span<const JobReport> reports) {
  std::set<std::string> now;
  for (const JobReport& report : reports) {
    if (!report.job.runs()) continue;
    for (const Cause& cause : report.analysis.causes) {
      std::string key = key_of(cause, report.job);
      if (is_first_ || keys_.contains(key)) now.insert(std::move(key));
    }
  }
  is_first_ = false;
  keys_ = std::move(now);
}

}  // namespace beeline::hang
