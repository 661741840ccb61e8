// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "include/beeline/stats_page.h"
#include "tools/cli/text_width.h"
#include "tools/hang/words.h"

namespace beeline::hang {
namespace {

using pages::Process;

}  // namespace

const char* name_of(Reason reason) {
  switch (reason) {
    case Reason::kStopped: return "stopped";
    case Reason::kEnded: return "ended";
    case Reason::kCallsNothing: return "calls-nothing";
    case Reason::kNoReceive: return "no-receive";
    case Reason::kNoSend: return "no-send";
    case Reason::kNotAccepted: return "not-accepted";
    case Reason::kConnectionFailed: return "connection-failed";
    case Reason::kLost: return "packets-lost";
    case Reason::kCreditLost: return "credit-lost";
    case Reason::kNoPath: return "no-path";
    case Reason::kRankMissing: return "rank-missing";
    case Reason::kNotBegun: return "not-begun";
    case Reason::kElsewhere: return "elsewhere";
    case Reason::kCircle: return "circle";
  }
  return "?";
}

namespace {

std::string wait_line(const WaitingEnd& wait, std::span<const Process> processes) {
  const SlotView& slot = slot_of(wait, processes);
  const Names names(processes);
  std::string end = slot.device;
  if (!wait.is_listener) {
    end += slot.role == SlotRole::kSend ? " to " : " from ";
    end += names.peer_of(wait);
  }
  return fmt::format("{}, {}: waits {} for {}", names.of(wait.process), end, seconds(wait.ns),
                     beeline_stats_wait_text(static_cast<std::uint32_t>(slot.waits_for)));
}

// Each line once, and how often it would stand there.
std::vector<std::pair<std::string, std::size_t>> wait_lines(const Analysis& analysis,
                                                            std::span<const Process> processes) {
  std::vector<std::pair<std::string, std::size_t>> lines;
  std::map<std::string, std::size_t> place;
  for (const WaitingEnd& wait : analysis.waits) {
    const std::string line = wait_line(wait, processes);
    const auto [found, is_new] = place.try_emplace(line, lines.size());
    if (is_new) lines.emplace_back(line, 0);
    ++lines[found->second].second;
  }
  return lines;
}

std::string summary(const Analysis& analysis, std::span<const Process> processes) {
  std::size_t running = 0;
  std::size_t ended = 0;
  std::size_t connections = 0;
  for (const Process& process : processes) {
    if (process.life == pages::Life::kEnded) {
      ++ended;
      continue;
    }
    ++running;
    connections += process.connections.size();
  }
  if (running == 0) {
    const std::string left =
        ended == 0 ? "" : fmt::format("; {} ended and left pages: see beeline replay", ended);
    return fmt::format("no running process uses Beeline{}\n", left);
  }
  const std::string found =
      fmt::format("{} with {}", running == 1 ? "1 process" : fmt::format("{} processes", running),
                  counted(connections, "connection"));
  if (analysis.waits.empty())
    return found + (analysis.causes.empty() ? ": none has waited for long\n"
                                            : ": none has waited for long, but a peer has gone\n");
  return fmt::format("{}: {} for long\n", found,
                     analysis.waits.size() == 1
                         ? "1 has waited"
                         : fmt::format("{} have waited", analysis.waits.size()));
}

std::string text_of_job(const JobReport& report, std::int64_t now_ns,
                        const tools::TextStyle& style) {
  const Analysis& analysis = report.analysis;
  const std::span<const Process> processes = report.job.processes;
  const std::size_t width = style.width;
  std::string text = tools::wrapped(summary(analysis, processes), 0, width);
  for (const Cause& cause : analysis.causes) {
    const Words words(cause, processes, now_ns);
    text += fmt::format("\n{}    {}\n", tools::colored("CAUSE", tools::Color::kRed, style.in_color),
                        tools::wrapped(words.fact(), 9, width));
    if (cause.waiting != 0) {
      const std::string who =
          cause.waiting == 1 ? "1 process waits" : fmt::format("{} processes wait", cause.waiting);
      const char* const lost =
          cause.waiting == 1 ? " for it, or has lost it" : " for it, or have lost it";
      const char* const how =
          cause.survivors.empty() ? " for it, at once or by way of others" : lost;
      text += fmt::format("         {}\n", tools::wrapped(who + how, 9, width));
    }
    text += fmt::format("         next  {}\n", tools::wrapped(words.advice(), 15, width));
  }
  if (analysis.waits.empty()) return text;
  text += "\nConnections that wait\n";
  for (const auto& [line, count] : wait_lines(analysis, processes)) {
    const std::string times = count == 1 ? "" : fmt::format(" ({} connections)", count);
    text += fmt::format("  {}\n", tools::wrapped(line + times, 4, width));
  }
  return text;
}

// "Job 48213.0"
std::string title_of(const pages::Job& job) {
  if (!job.name.empty()) return "Job " + job.name;
  return fmt::format("A job without a name, with pid {}", job.processes.front().pid);
}

using Json = nlohmann::ordered_json;

Json process_json(const Process& process, const std::string& job) {
  Json json = {{"pid", process.pid}, {"host", process.host}};
  if (process.rank) json["rank"] = *process.rank;
  if (!job.empty()) json["job"] = job;
  return json;
}

void add_json(Json& document, const JobReport& report, std::int64_t now_ns) {
  const std::span<const Process> processes = report.job.processes;
  for (const Cause& cause : report.analysis.causes) {
    const Words words(cause, processes, now_ns);
    Json json = {{"reason", name_of(cause.reason)}};
    if (!report.job.name.empty()) json["job"] = report.job.name;
    if (cause.process) {
      json["process"] = process_json(processes[*cause.process], report.job.name);
    } else if (cause.death) {
      const SlotView& lost = processes[cause.death->witness].failed[cause.death->failed];
      json["process"] = {{"pid", lost.peer_pid}, {"host", lost.peer_host}};
    }
    json["fact"] = words.fact();
    json["advice"] = words.advice();
    json["processes_waiting"] = cause.waiting;
    json["connections"] = cause.connections.size();
    document["causes"].push_back(std::move(json));
  }
  for (const WaitingEnd& wait : report.analysis.waits) {
    const SlotView& slot = slot_of(wait, processes);
    document["waits"].push_back(
        {{"process", process_json(processes[wait.process], report.job.name)},
         {"role", beeline_stats_role_text(static_cast<std::uint32_t>(slot.role))},
         {"device", slot.device},
         {"peer_host", slot.peer_host},
         {"peer_pid", slot.peer_pid},
         {"peer_device", slot.peer_device},
         {"for", beeline_stats_wait_text(static_cast<std::uint32_t>(slot.waits_for))},
         {"seconds", static_cast<double>(wait.ns) / 1e9},
         {"requests", slot.requests}});
  }
}

}  // namespace

std::vector<JobReport> reports_of(std::vector<Process> processes, std::int64_t now_ns,
                                  std::int64_t least_ns) {
  std::vector<pages::Job> jobs = pages::jobs_of(std::move(processes));
  std::vector<JobReport> reports;
  reports.reserve(jobs.size());
  for (pages::Job& job : jobs) {
    JobReport& report = reports.emplace_back(JobReport{.job = std::move(job), .analysis = {}});
    report.analysis = find_causes(report.job.processes, now_ns, least_ns);
  }
  return reports;
}

std::string text_of(std::span<const JobReport> reports, std::int64_t now_ns,
                    const tools::TextStyle& style) {
  if (reports.empty()) return text_of_job({}, now_ns, style);
  if (reports.size() == 1) return text_of_job(reports.front(), now_ns, style);
  std::string text;
  for (const JobReport& report : reports) {
    if (!text.empty()) text += "\n";
    text += tools::colored(title_of(report.job), tools::Color::kBold, style.in_color) + "\n";
    text += text_of_job(report, now_ns, style);
  }
  return text;
}

std::string json_of(std::span<const JobReport> reports, std::int64_t now_ns,
                    const std::optional<std::set<std::string>>& collectives) {
  Json document = {{"causes", Json::array()}, {"waits", Json::array()}};
  for (const JobReport& report : reports) add_json(document, report, now_ns);
  if (collectives) document["collectives"] = *collectives;
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace beeline::hang
