// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "include/beeline/stats_page.h"

namespace beeline::hang {
namespace {

using pages::Process;

std::string seconds(std::int64_t ns) { return fmt::format("{} s", ns / kNsPerSec); }

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "rank 2 (pid 4711)"
std::string name_of(const Process& process) {
  const std::string pid = fmt::format("pid {}", process.pid);
  return process.rank ? fmt::format("rank {} ({})", *process.rank, pid) : pid;
}

const char* name_of(Reason reason) {
  switch (reason) {
    case Reason::kStopped: return "stopped";
    case Reason::kEnded: return "ended";
    case Reason::kCallsNothing: return "calls-nothing";
    case Reason::kNoReceive: return "no-receive";
    case Reason::kNoSend: return "no-send";
    case Reason::kLost: return "packets-lost";
    case Reason::kNoPath: return "no-path";
    case Reason::kElsewhere: return "elsewhere";
    case Reason::kCircle: return "circle";
  }
  return "?";
}

class Words {
 public:
  Words(const Cause& cause, std::span<const Process> processes)
      : cause_(cause), processes_(processes) {}

  std::string fact() const {
    const std::string time = seconds(cause_.example.ns);
    switch (cause_.reason) {
      case Reason::kStopped: return culprit() + " is stopped, by a signal or a debugger";
      case Reason::kEnded: return culprit() + " has ended";
      case Reason::kCallsNothing:
        return fmt::format("{} has {}, and has called nothing for them for {}", culprit(),
                           counted(slot().requests, "open request"), time);
      case Reason::kNoReceive:
        return fmt::format("{} has posted no receive for {}, and waits for nothing itself",
                           culprit(), time);
      case Reason::kNoSend:
        return fmt::format("{} has sent nothing for {}, and waits for nothing itself", culprit(),
                           time);
      case Reason::kLost:
        return fmt::format("packets between {} of {} and {} of {} have been lost for {}",
                           slot().device, waiting(), slot().peer_device, peer(), time);
      case Reason::kNoPath:
        return fmt::format("no path works between {} of {} and {} of {}", slot().device, waiting(),
                           slot().peer_device, peer());
      case Reason::kElsewhere:
        return fmt::format("{} has waited {} for {}, whose page is not here", waiting(), time,
                           peer());
      case Reason::kCircle: return "the processes wait for one another";
    }
    return {};
  }

  std::string advice() const {
    switch (cause_.reason) {
      case Reason::kStopped: return fmt::format("kill -CONT {}", processes_[*cause_.process].pid);
      case Reason::kEnded: return "look at the end of its log, and at the kernel's (dmesg)";
      case Reason::kCallsNothing:
      case Reason::kNoReceive:
      case Reason::kNoSend:
        return fmt::format("py-spy dump --pid {0}, or gdb -p {0} -batch -ex 'thread apply all bt'",
                           processes_[*cause_.process].pid);
      case Reason::kLost:
        return "look at the counters of both ports and of the switches between them; beeline "
               "doctor --peer HOST measures the path";
      case Reason::kNoPath: return "beeline doctor";
      case Reason::kElsewhere:
        if (slot().peer_host == processes_[cause_.example.process].host) {
          return "its page cannot be read, or the connection is not in it: run this as its user";
        }
        return "beeline hang on that host";
      case Reason::kCircle:
        return "do all ranks call the same collectives in the same order? NCCL_DEBUG_SUBSYS=COLL "
               "shows them";
    }
    return {};
  }

 private:
  const SlotView& slot() const {
    return processes_[cause_.example.process].connections[cause_.example.connection];
  }
  std::string culprit() const { return name_of(processes_[*cause_.process]); }
  std::string waiting() const { return name_of(processes_[cause_.example.process]); }
  std::string peer() const {
    if (cause_.example.peer) return name_of(processes_[*cause_.example.peer]);
    return fmt::format("pid {} on {}", slot().peer_pid, slot().peer_host);
  }

  const Cause& cause_;
  std::span<const Process> processes_;
};

std::string wait_line(const WaitingEnd& wait, std::span<const Process> processes) {
  const SlotView& slot = processes[wait.process].connections[wait.connection];
  const std::string peer = wait.peer ? name_of(processes[*wait.peer])
                                     : fmt::format("pid {} on {}", slot.peer_pid, slot.peer_host);
  const bool sends = slot.role == SlotRole::kSend;
  return fmt::format("  {}, {} {} {}: waits {} for {}\n", name_of(processes[wait.process]),
                     slot.device, sends ? "to" : "from", peer, seconds(wait.ns),
                     beeline_stats_wait_text(static_cast<std::uint32_t>(slot.waits_for)));
}

std::string summary(const Analysis& analysis, std::span<const Process> processes) {
  std::size_t running = 0;
  std::size_t connections = 0;
  for (const Process& process : processes) {
    if (process.life == pages::Life::kEnded) continue;
    ++running;
    connections += process.connections.size();
  }
  if (running == 0) return "no process of this host uses Beeline\n";
  const std::string found =
      fmt::format("{} with {}", running == 1 ? "1 process" : fmt::format("{} processes", running),
                  counted(connections, "connection"));
  if (analysis.waits.empty()) return found + ": none has waited for long\n";
  return fmt::format("{}: {} for long\n", found,
                     analysis.waits.size() == 1
                         ? "1 has waited"
                         : fmt::format("{} have waited", analysis.waits.size()));
}

}  // namespace

std::string text_of(const Analysis& analysis, std::span<const Process> processes) {
  std::string text = summary(analysis, processes);
  for (const Cause& cause : analysis.causes) {
    const Words words(cause, processes);
    text += fmt::format("\nCAUSE    {}\n", words.fact());
    if (cause.waiting != 0) {
      text += fmt::format(
          "         {} for it, at once or by way of others\n",
          cause.waiting == 1 ? "1 process waits" : fmt::format("{} processes wait", cause.waiting));
    }
    text += fmt::format("         look  {}\n", words.advice());
  }
  if (analysis.waits.empty()) return text;
  text += "\nConnections that wait\n";
  for (const WaitingEnd& wait : analysis.waits) text += wait_line(wait, processes);
  return text;
}

std::string json_of(const Analysis& analysis, std::span<const Process> processes) {
  using Json = nlohmann::ordered_json;
  const auto process_json = [](const Process& process) {
    Json json = {{"pid", process.pid}};
    if (process.rank) json["rank"] = *process.rank;
    return json;
  };
  Json document = {{"causes", Json::array()}, {"waits", Json::array()}};
  for (const Cause& cause : analysis.causes) {
    const Words words(cause, processes);
    Json json = {{"reason", name_of(cause.reason)}};
    if (cause.process) json["process"] = process_json(processes[*cause.process]);
    json["fact"] = words.fact();
    json["advice"] = words.advice();
    json["processes_waiting"] = cause.waiting;
    document["causes"].push_back(std::move(json));
  }
  for (const WaitingEnd& wait : analysis.waits) {
    const SlotView& slot = processes[wait.process].connections[wait.connection];
    document["waits"].push_back(
        {{"process", process_json(processes[wait.process])},
         {"role", beeline_stats_role_text(static_cast<std::uint32_t>(slot.role))},
         {"device", slot.device},
         {"peer_host", slot.peer_host},
         {"peer_pid", slot.peer_pid},
         {"peer_device", slot.peer_device},
         {"for", beeline_stats_wait_text(static_cast<std::uint32_t>(slot.waits_for))},
         {"seconds", static_cast<double>(wait.ns) / 1e9},
         {"requests", slot.requests}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace beeline::hang
