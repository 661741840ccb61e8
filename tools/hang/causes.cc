// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/causes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace beeline::hang {
namespace {

using pages::Life;
using pages::Process;

class Search {
 public:
  Search(std::span<const Process> processes, std::int64_t now_ns) : processes_(processes) {
    // The number of a process that has ended may be in use again.
    for (const bool has_ended : {true, false}) {
      for (std::size_t p = 0; p < processes.size(); ++p) {
        if ((processes[p].life == Life::kEnded) == has_ended) add_numbers(p);
      }
    }
    for (std::size_t p = 0; p < processes.size(); ++p) {
      if (processes[p].life != Life::kRuns) continue;  // what it says is not news
      for (std::size_t c = 0; c < processes[p].connections.size(); ++c) {
        add_wait(p, c, now_ns);
      }
    }
  }

  Analysis analyze(std::int64_t least_ns) {
    Analysis analysis;
    for (const WaitingEnd& wait : waits_) {
      if (wait.ns >= least_ns) analysis.waits.push_back(wait);
    }
    follow(analysis.waits);
    std::set<std::size_t> explained;
    for (const Cause& cause : causes_) explained.merge(waiting_for(cause));
    const auto unexplained = std::ranges::find_if(analysis.waits, [&](const WaitingEnd& wait) {
      return slot(wait).waits_for != Wait::kTest && !explained.contains(wait.process);
    });
    if (unexplained != analysis.waits.end()) {
      causes_.push_back({.reason = Reason::kCircle, .process = {}, .example = *unexplained});
    }
    for (Cause& cause : causes_) {
      cause.waiting = waiting_for(cause).size() - (cause.process ? 1 : 0);
    }
    std::ranges::stable_sort(causes_, std::greater{}, &Cause::waiting);
    analysis.causes = std::move(causes_);
    return analysis;
  }

 private:
  const SlotView& slot(const WaitingEnd& wait) const {
    return processes_[wait.process].connections[wait.connection];
  }
  const SlotView& peer_slot(const WaitingEnd& wait) const {
    return processes_[*wait.peer].connections[*wait.peer_connection];
  }
  bool waits(std::size_t process) const { return waiting_.contains(process); }
  // Whether it has made calls since then.
  bool is_calling(std::size_t process, std::uint64_t since_ns) const {
    return calling_.contains(process) ||
           std::ranges::any_of(processes_[process].connections, [&](const SlotView& connection) {
             return connection.moved_ns > since_ns;
           });
  }

  void add_numbers(std::size_t p) {
    for (std::size_t c = 0; c < processes_[p].connections.size(); ++c) {
      const SlotView& slot = processes_[p].connections[c];
      by_number_[{processes_[p].host, processes_[p].pid, slot.number}] = {p, c};
    }
  }

  void add_wait(std::size_t p, std::size_t c, std::int64_t now_ns) {
    const SlotView& slot = processes_[p].connections[c];
    const auto since_ns = static_cast<std::int64_t>(slot.waits_since_ns);
    if (slot.waits_for == Wait::kNothing || since_ns <= 0 || since_ns > now_ns) return;
    WaitingEnd wait = {.process = p, .connection = c, .peer = {}, .peer_connection = {}};
    wait.ns = now_ns - since_ns;
    const auto peer_pid = static_cast<std::int64_t>(slot.peer_pid);
    const auto found = by_number_.find({slot.peer_host, peer_pid, slot.peer_number});
    if (found != by_number_.end()) {
      const auto [peer, connection] = found->second;
      if (processes_[peer].connections[connection].peer_number == slot.number) {
        wait.peer = peer;
        wait.peer_connection = connection;
      }
    }
    waits_.push_back(wait);
    waiting_.insert(p);
    if (slot.waits_for != Wait::kTest) calling_.insert(p);
  }

  // From these waits on, however short the next ones are.
  void follow(std::vector<WaitingEnd> pending) {
    std::set<std::size_t> followed;  // processes
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const WaitingEnd wait = pending[i];
      if (const std::optional<Cause> cause = cause_at(wait)) {
        add(*cause);
        continue;
      }
      const std::size_t next = slot(wait).waits_for == Wait::kTest ? wait.process : *wait.peer;
      if (!followed.insert(next).second) continue;
      for (const WaitingEnd& other : waits_) {
        if (other.process == next) pending.push_back(other);
      }
    }
  }

  // None: what the connection waits for waits itself.
  std::optional<Cause> cause_at(const WaitingEnd& wait) const {
    const auto of = [&](Reason reason, std::optional<std::size_t> process = {}) {
      return Cause{.reason = reason, .process = process, .example = wait};
    };
    const Wait what = slot(wait).waits_for;
    if (what == Wait::kTest) {
      if (is_calling(wait.process, slot(wait).waits_since_ns)) return std::nullopt;
      return of(Reason::kCallsNothing, wait.process);
    }
    if (what == Wait::kPath) return of(Reason::kNoPath);
    if (!wait.peer) {
      return of(what == Wait::kAcknowledgment ? Reason::kLost : Reason::kElsewhere);
    }
    switch (processes_[*wait.peer].life) {
      case Life::kStopped: return of(Reason::kStopped, wait.peer);
      case Life::kEnded: return of(Reason::kEnded, wait.peer);
      case Life::kRuns: break;
    }
    const Wait other = peer_slot(wait).waits_for;
    const bool both_do_their_part = (what == Wait::kCredit && other == Wait::kData) ||
                                    (what == Wait::kData && other == Wait::kCredit) ||
                                    (what == Wait::kData && other == Wait::kAcknowledgment) ||
                                    what == Wait::kAcknowledgment;
    // If the peer calls nothing at all, it does not see what has come.
    const bool is_peer_silent =
        other == Wait::kTest && !is_calling(*wait.peer, peer_slot(wait).waits_since_ns);
    if (both_do_their_part && !is_peer_silent) return of(Reason::kLost);
    if (waits(*wait.peer)) return std::nullopt;
    return of(what == Wait::kCredit ? Reason::kNoReceive : Reason::kNoSend, wait.peer);
  }

  bool is_same(const Cause& a, const Cause& b) const {
    if (a.reason == Reason::kNoReceive || a.reason == Reason::kNoSend) {
      return (b.reason == Reason::kNoReceive || b.reason == Reason::kNoSend) &&
             a.process == b.process;
    }
    if (a.reason != b.reason) return false;
    if (a.process || b.process) return a.process == b.process;
    if (a.reason == Reason::kElsewhere) {
      return slot(a.example).peer_pid == slot(b.example).peer_pid &&
             slot(a.example).peer_host == slot(b.example).peer_host;
    }
    // The two ends of one connection.
    const bool is_same_end =
        a.example.process == b.example.process && a.example.connection == b.example.connection;
    return is_same_end || (a.example.peer == b.example.process &&
                           a.example.peer_connection == b.example.connection);
  }

  void add(const Cause& cause) {
    for (Cause& known : causes_) {
      if (!is_same(known, cause)) continue;
      if (known.example.ns < cause.example.ns) known = cause;
      return;
    }
    causes_.push_back(cause);
  }

  // The cause, and the processes from which the waits lead to it.
  std::set<std::size_t> waiting_for(const Cause& cause) const {
    std::set<std::size_t> reached;
    if (cause.process) {
      reached.insert(*cause.process);
    } else {
      reached.insert(cause.example.process);
      if (cause.example.peer) reached.insert(*cause.example.peer);
    }
    for (std::size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const WaitingEnd& wait : waits_) {
        if (wait.peer && reached.contains(*wait.peer)) reached.insert(wait.process);
      }
    }
    return reached;
  }

  std::span<const Process> processes_;
  // By host, process and number: the process and the connection in the list.
  using End = std::tuple<std::string, std::int64_t, std::uint32_t>;
  std::map<End, std::pair<std::size_t, std::size_t>> by_number_;
  std::vector<WaitingEnd> waits_;
  std::set<std::size_t> waiting_;  // processes
  // The processes that make calls for at least one connection that waits. A thread that waits for
  // one request may leave others untested.
  std::set<std::size_t> calling_;
  std::vector<Cause> causes_;
};

}  // namespace

Analysis find_causes(std::span<const Process> processes, std::int64_t now_ns,
                     std::int64_t least_ns) {
  return Search(processes, now_ns).analyze(least_ns);
}

}  // namespace beeline::hang
