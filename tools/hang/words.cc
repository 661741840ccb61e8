// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace beeline::hang {
namespace {

// "rank 2", "ranks 2, 5-7"
std::string text_of(const std::vector<RankRange>& ranges) {
  const bool is_one = ranges.size() == 1 && ranges.front().first == ranges.front().second;
  return (is_one ? "rank " : "ranks ") + ranks_text(ranges);
}

// "peer closed", "system: Connection refused"
std::string error_of(const SlotView& failed) {
  const auto event = std::ranges::find(failed.life, Event::kFailed, &EventView::event);
  if (event == failed.life.end()) return "?";
  std::string kind = to_string(static_cast<Errc>(event->arg));
  if (event->value == 0) return kind;
  return kind + ": " + std::generic_category().message(static_cast<int>(event->value));
}

}  // namespace

std::vector<std::string> names_of_ports_down(const SlotView& connection) {
  const std::vector<bool> is_down = own_ports_down(connection);
  std::vector<std::string> ports;
  for (std::size_t path = 0; path < is_down.size(); ++path) {
    if (is_down[path]) ports.push_back(connection.paths[path].device);
  }
  return ports;
}

std::string ranks_text(const std::vector<RankRange>& ranges) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < ranges.size() && i < kMost; ++i) {
    const auto [first, last] = ranges[i];
    if (i != 0) text += ", ";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return ranges.size() > kMost ? text + ", ..." : text;
}

std::string seconds(std::int64_t ns) { return fmt::format("{} s", ns / kNsPerSec); }

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Names::of(std::size_t index) const {
  const pages::Process& process = processes_[index];
  std::string pid = fmt::format("pid {}", process.pid);
  if (has_hosts_) pid += " on " + process.host;
  return process.rank ? fmt::format("rank {} ({})", *process.rank, pid) : pid;
}

std::string Names::peer_of(const WaitingEnd& wait) const {
  if (wait.peer) return of(*wait.peer);
  const SlotView& slot = slot_of(wait, processes_);
  if (slot.peer_pid != 0) return fmt::format("pid {} on {}", slot.peer_pid, slot.peer_host);
  return fmt::format("{} on {}", slot.peer_device, slot.peer_host);
}

std::string Words::fact() const {
  const std::size_t blocked = cause_.process ? processes_[*cause_.process].blocked_threads : 0;
  if (blocked == 0) return plain_fact();
  return fmt::format(
      "{}; {} of it {} in the kernel and take{} no signal (state D), as for storage "
      "that does not answer",
      plain_fact(), counted(blocked, "thread"), blocked == 1 ? "waits" : "wait",
      blocked == 1 ? "s" : "");
}

std::string Words::plain_fact() const {
  const std::string time = seconds(cause_.example.ns);
  switch (cause_.reason) {
    case Reason::kStopped: return culprit() + " is stopped, by a signal or a debugger";
    case Reason::kEnded: return ended();
    case Reason::kCallsNothing:
      return fmt::format("{} has {}, and has called nothing for them for {}", culprit(),
                         counted(slot().requests, "open request"), time);
    case Reason::kNoReceive:
      return fmt::format("{} has posted no receive for {}, and waits for nothing itself", culprit(),
                         time);
    case Reason::kNoSend:
      return fmt::format("{} has sent nothing for {}, and waits for nothing itself", culprit(),
                         time);
    case Reason::kNotAccepted:
      return fmt::format(
          "{} has not accepted the connection of {} for {}, and waits for nothing "
          "itself",
          culprit(), waiting(), time);
    case Reason::kConnectionFailed: return failed_connection();
    case Reason::kLost:
      if (slot().waits_for == Wait::kConnect) {
        return fmt::format("the connection of {} to {} is not made for {}, although both try",
                           waiting(), peer(), time);
      }
      return fmt::format("packets between {} of {} and {} of {} have been lost for {}{}",
                         slot().device, waiting(), slot().peer_device, peer(), time,
                         on_connections());
    case Reason::kCreditLost: return lost_credit();
    case Reason::kNoPath:
      return fmt::format("no path works between {} of {} and {} of {}{}{}", slot().device,
                         waiting(), slot().peer_device, peer(), on_connections(), ports_down());
    case Reason::kRankMissing: return missing_ranks();
    case Reason::kNotBegun:
      return fmt::format(
          "{} has neither listened nor connected yet, and {} has waited {} for a "
          "connection",
          culprit(), waiting(), time);
    case Reason::kElsewhere:
      if (cause_.example.is_listener) return unmet();
      return fmt::format("{} has waited {} for {}, whose page is not here", waiting(), time,
                         peer());
    case Reason::kCircle: return "the processes wait for one another";
  }
  return {};
}

std::string Words::advice() const {
  const bool is_for_both = cause_.reason == Reason::kCreditLost;
  if (!names_.has_hosts() || !cause_.process || is_for_both) return advice_on_host();
  return "on " + processes_[*cause_.process].host + ": " + advice_on_host();
}

std::string Words::advice_on_host() const {
  switch (cause_.reason) {
    case Reason::kStopped: return fmt::format("kill -CONT {}", processes_[*cause_.process].pid);
    case Reason::kEnded: return "look at the end of its log, and at the kernel's (dmesg)";
    case Reason::kCallsNothing:
    case Reason::kNoReceive:
    case Reason::kNoSend:
    case Reason::kNotAccepted:
    case Reason::kNotBegun: return advice_for_threads();
    case Reason::kConnectionFailed:
      return fmt::format(
          "look why in its log, and at the other end of that connection; py-spy "
          "dump --pid {} shows what it does now",
          processes_[*cause_.process].pid);
    case Reason::kLost:
      if (slot().waits_for == Wait::kConnect) {
        return "look at the logs of both, and whether a firewall is between them: connections "
               "are made over TCP (NCCL_SOCKET_IFNAME)";
      }
      return "look at the counters of both ports and of the switches between them; beeline "
             "doctor --peer HOST measures the path";
    case Reason::kCreditLost:
      return "if its port goes down for a moment, the credit is sent again (unless "
             "BEELINE_RECOVERY=0); look at the counters of both ports, and for PCIe errors in the "
             "kernel's log (dmesg) of both hosts: a device may have lost a write that it has "
             "reported as done";
    case Reason::kNoPath:
      return ports_down().empty() ? "look at the logs of both processes, which say what has "
                                    "failed; beeline doctor on both hosts"
                                  : "look at the cable and at the switch of that port";
    case Reason::kRankMissing:
      return "look whether they were started, and at the end of their logs; if they are on "
             "another host, beeline hang there";
    case Reason::kElsewhere:
      if (cause_.example.is_listener) {
        return cause_.unconnected.empty()
                   ? "beeline hang on the other hosts of the job; here, look at the processes that "
                     "wait for nothing"
                   : "look where the threads of these are: py-spy dump --pid PID";
      }
      if (slot().peer_host == processes_[cause_.example.process].host) {
        return "its page cannot be read, or the connection is not in it: run this as its user";
      }
      return "beeline hang there, or beeline hang --save on all hosts";
    case Reason::kCircle:
      return "do all ranks call the same collectives in the same order? NCCL_DEBUG_SUBSYS=COLL "
             "shows them";
  }
  return {};
}

// A debugger would wait for a blocked thread as well.
std::string Words::advice_for_threads() const {
  const pages::Process& process = processes_[*cause_.process];
  if (process.blocked_threads != 0) {
    return fmt::format(
        "look at the file systems that it uses (NFS, Lustre) and at the kernel's log "
        "(dmesg); cat /proc/{}/task/*/wchan says where it waits",
        process.pid);
  }
  return fmt::format("py-spy dump --pid {0}, or gdb -p {0} -batch -ex 'thread apply all bt'",
                     process.pid);
}

// ": mlx5_0:1 of rank 2 (pid 4711) is DOWN"; empty if neither process has seen such a port of its
// own go down. A process that does not call a connection sees it on another one.
std::string Words::ports_down() const {
  std::set<std::string> down;
  for (const auto& [one, other] : cause_.connections) {
    for (const auto& [end, far] : {std::pair(one, other), std::pair(other, one)}) {
      const pages::Process& owner = processes_[end.first];
      const std::string& called = processes_[far.first].connections[far.second].peer_device;
      for (const SlotView& connection : owner.connections) {
        const bool is_this = &connection == &owner.connections[end.second];
        for (const std::string& port : names_of_ports_down(connection)) {
          if (is_this || (end != far && port == called)) {
            down.insert(port + " of " + names_.of(end.first));
          }
        }
      }
    }
  }
  if (down.empty()) return "";
  return fmt::format(": {} {} DOWN", fmt::join(down, " and "), down.size() == 1 ? "is" : "are");
}

std::string Words::unmet() const {
  std::string text = fmt::format("{} has waited {} for a connection, and no process {}", waiting(),
                                 seconds(cause_.example.ns),
                                 cause_.unconnected.empty() ? "here makes it" : "makes it");
  const char* before = ": these wait for nothing: ";
  for (const std::size_t process : cause_.unconnected)
    text += std::exchange(before, ", ") + names_.of(process);
  return text;
}

std::string Words::on_connections() const {
  const std::size_t count = cause_.connections.size();
  return count == 1 ? "" : fmt::format(", on {}", counted(count, "connection"));
}

std::string Words::ended() const {
  if (!cause_.death) return culprit() + " has ended";
  const Death& death = *cause_.death;
  const SlotView& failed = processes_[death.witness].failed[death.failed];
  const auto since_ns = now_ns_ - static_cast<std::int64_t>(noticed_at_ns(death, processes_));
  const std::string who =
      cause_.process ? culprit() + " has ended"
                     : fmt::format("pid {} on {} has ended, or its host is not reached any more",
                                   failed.peer_pid, failed.peer_host);
  return fmt::format("{}, without closing its connections: {} has noticed it first, {} ago", who,
                     names_.of(death.witness), seconds(std::max<std::int64_t>(since_ns, 0)));
}

std::string Words::lost_credit() const {
  const bool receives = cause_.example.process == *cause_.process;
  const std::string& ours = slot().device;
  const std::string& theirs = slot().peer_device;
  return fmt::format(
      "{} has posted a receive, and {} wants to send and has not been told of it for {}: the "
      "credit from {} to {} is lost",
      culprit(), receives ? peer() : waiting(), seconds(cause_.example.ns),
      receives ? ours : theirs, receives ? theirs : ours);
}

std::string Words::failed_connection() const {
  const SlotView& failed = processes_[*cause_.process].failed[*cause_.failed];
  return fmt::format(
      "{} has a connection that failed, {} {} on {} ({}), and waits for nothing "
      "itself",
      culprit(), failed.role == SlotRole::kSend ? "to" : "from", failed.peer_device,
      failed.peer_host, error_of(failed));
}

std::string Words::missing_ranks() const {
  const bool is_one =
      cause_.missing.size() == 1 && cause_.missing.front().first == cause_.missing.front().second;
  const auto ranks = processes_[cause_.example.process].ranks;
  std::string text = fmt::format(
      "{} of {} {} no running process with a statistics page on {}: {} not started, {} "
      "ended, or {} on another host",
      text_of(cause_.missing), ranks.value_or(0), is_one ? "has" : "have",
      names_.has_hosts() ? "these hosts" : "this host", is_one ? "it has" : "they have",
      is_one ? "has" : "have", is_one ? "runs" : "run");
  for (const std::size_t process : cause_.unconnected) {
    text += fmt::format("; {} has made no connection yet", names_.of(process));
  }
  return text;
}

}  // namespace beeline::hang
