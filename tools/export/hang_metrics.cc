// SPDX-License-Identifier: Apache-2.0
#include "tools/export/hang_metrics.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/clock.h"
#include "tools/hang/report.h"
#include "tools/hang/words.h"

namespace beeline::exporter {
namespace {

// A checkpoint or a slow step takes longer than this now and then, so alerts wait for longer.
constexpr std::int64_t kLeastNs = 5 * kNsPerSec;
// The pages of an ended job stay for an hour. An alert for it is over before.
constexpr double kLongestEndedSeconds = 600;
// The labels are of jobs, which come and go: a host has a few at a time.
constexpr std::size_t kMostJobs = 64;
constexpr std::size_t kMostCausesOfJob = 8;

struct Culprit {
  std::string rank;
  std::string host;
};

// As far as it is known.
Culprit culprit_of(const hang::Cause& cause, const pages::Job& job) {
  if (cause.process) {
    const pages::Process& process = job.processes[*cause.process];
    return {process.rank ? std::to_string(*process.rank) : "", process.host};
  }
  if (cause.death)
    return {"", job.processes[cause.death->witness].failed[cause.death->failed].peer_host};
  return {hang::ranks_text(cause.missing), ""};
}

double seconds_of(const hang::Cause& cause, const pages::Job& job, std::int64_t now_ns) {
  if (!cause.death) return static_cast<double>(cause.example.ns) / kNsPerSec;
  const auto since_ns = static_cast<std::int64_t>(hang::noticed_at_ns(*cause.death, job.processes));
  return static_cast<double>(std::max<std::int64_t>(now_ns - since_ns, 0)) / kNsPerSec;
}

// Several causes may have the same labels, of which Prometheus takes one.
void add_job(Exposition& out, const hang::JobReport& report, std::int64_t now_ns) {
  const bool runs = report.job.runs();
  std::map<std::tuple<std::string, std::string, std::string>, double> longest;
  for (const hang::Cause& cause : report.analysis.causes) {
    // The exporter of the other host names the process.
    if (cause.reason == hang::Reason::kElsewhere) continue;
    const double seconds = seconds_of(cause, report.job, now_ns);
    if (!runs && seconds > kLongestEndedSeconds) continue;
    if (longest.size() == kMostCausesOfJob) break;
    Culprit culprit = culprit_of(cause, report.job);
    double& known =
        longest[{std::move(culprit.rank), std::move(culprit.host), hang::name_of(cause.reason)}];
    known = std::max(known, seconds);
  }
  for (const auto& [labels, seconds] : longest) {
    const auto& [rank, host, reason] = labels;
    // Prometheus uses the label "job" itself.
    out.add(
        {{"nccl_job", report.job.name}, {"rank", rank}, {"culprit_host", host}, {"reason", reason}},
        seconds);
  }
}

}  // namespace

void add_hang_causes(Exposition& out, const State& state) {
  out.begin({.name = "beeline_hang_cause_seconds",
             .help = "For how long other processes of the job have waited for this one, or since "
                     "when they have lost it, as beeline hang finds out from this host."});
  const std::vector<hang::JobReport> reports =
      hang::reports_of(state.processes.all, state.now_ns, kLeastNs);
  std::set<std::string> names;  // two jobs without one would have the same labels
  for (const hang::JobReport& report : reports) {
    if (names.size() == kMostJobs) break;
    if (names.insert(report.job.name).second) add_job(out, report, state.now_ns);
  }
}

}  // namespace beeline::exporter
