// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/causes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "tools/hang/peers.h"
#include "tools/hang/unmade.h"

namespace beeline::hang {
namespace {

using pages::Life;
using pages::Process;

class Search {
 public:
  Search(std::span<const Process> processes, std::int64_t now_ns)
      : processes_(processes), peers_(processes) {
    for (std::size_t p = 0; p < processes.size(); ++p) {
      if (processes[p].life != Life::kRuns) continue;  // what it says is not news
      for (std::size_t c = 0; c < processes[p].connections.size(); ++c) {
        add_wait({.process = p, .connection = c, .peer = {}, .peer_connection = {}}, now_ns);
      }
      for (std::size_t l = 0; l < processes[p].listeners.size(); ++l) {
        add_wait({.process = p,
                  .connection = l,
                  .peer = {},
                  .peer_connection = {},
                  .ns = 0,
                  .is_listener = true},
                 now_ns);
      }
    }
  }

  Analysis analyze(std::int64_t least_ns) {
    Analysis analysis;
    for (const WaitingEnd& wait : waits_) {
      if (wait.ns >= least_ns) analysis.waits.push_back(wait);
    }
    follow(analysis.waits);
    blame_missing_ranks();
    blame_links();
    blame_deaths();
    if (unmet_) blame_for_unmet(*unmet_);
    std::set<std::size_t> explained = leading_to(accepting());
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
  const SlotView& slot(const WaitingEnd& wait) const { return slot_of(wait, processes_); }
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

  void add_wait(WaitingEnd wait, std::int64_t now_ns) {
    const SlotView& its_slot = slot(wait);
    const auto since_ns = static_cast<std::int64_t>(its_slot.waits_since_ns);
    if (its_slot.waits_for == Wait::kNothing || since_ns <= 0 || since_ns > now_ns) return;
    wait.ns = now_ns - since_ns;
    peers_.find(wait);
    waits_.push_back(wait);
    waiting_.insert(wait.process);
    if (its_slot.waits_for != Wait::kTest) calling_.insert(wait.process);
  }

  // From these waits on, however short the next ones are.
  void follow(std::vector<WaitingEnd> pending) {
    std::set<std::size_t> followed;  // processes
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const WaitingEnd wait = pending[i];
      if (const std::optional<Cause> cause = cause_at(wait)) {
        // Who is to connect to a listener is not known. So this is a cause only if there is no
        // other.
        const bool is_unmet = wait.is_listener && !wait.peer && cause->reason == Reason::kElsewhere;
        if (!is_unmet) {
          add(*cause);
        } else if (!unmet_ || unmet_->example.ns < wait.ns) {
          unmet_ = cause;
        }
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
      if (what == Wait::kAcknowledgment) return of(Reason::kLost);
      const bool is_unmade = what == Wait::kConnect || what == Wait::kAccept;
      const bool is_missing =
          is_unmade && !missing_ranks(processes_, processes_[wait.process]).empty();
      return of(is_missing ? Reason::kRankMissing : Reason::kElsewhere);
    }
    switch (processes_[*wait.peer].life) {
      case Life::kStopped: return of(Reason::kStopped, wait.peer);
      case Life::kEnded: return of(Reason::kEnded, wait.peer);
      case Life::kRuns: break;
    }
    if (!wait.peer_connection) return cause_at_unmade(wait);
    const Wait other = peer_slot(wait).waits_for;
    const bool both_do_their_part = (what == Wait::kCredit && other == Wait::kData) ||
                                    (what == Wait::kData && other == Wait::kCredit) ||
                                    (what == Wait::kData && other == Wait::kAcknowledgment) ||
                                    what == Wait::kAcknowledgment;
    // If the peer calls nothing at all, it does not see what has come.
    const bool is_peer_silent =
        other == Wait::kTest && !is_calling(*wait.peer, peer_slot(wait).waits_since_ns);
    if (both_do_their_part && !is_peer_silent) return what_is_lost(wait);
    if (waits(*wait.peer)) return std::nullopt;
    return cause_in_peer(wait, what == Wait::kCredit ? Reason::kNoReceive : Reason::kNoSend);
  }

  // Both ends wait for what the other has sent. A receiver that has granted more than the sender
  // has used does not miss data: it is its credit that has not arrived.
  Cause what_is_lost(const WaitingEnd& wait) const {
    Cause cause = {.reason = Reason::kLost, .process = {}, .example = wait};
    const bool sends = slot(wait).role == SlotRole::kSend;
    const SlotView& sender = sends ? slot(wait) : peer_slot(wait);
    const SlotView& receiver = sends ? peer_slot(wait) : slot(wait);
    if (sender.waits_for == Wait::kCredit &&
        receiver[Counter::kGrants] > sender[Counter::kMessages]) {
      cause.reason = Reason::kCreditLost;
      cause.process = sends ? *wait.peer : wait.process;
    }
    return cause;
  }

  // The peer has a page, and this connection is not in it.
  std::optional<Cause> cause_at_unmade(const WaitingEnd& wait) const {
    if (slot(wait).waits_for == Wait::kConnect &&
        is_accepting(*wait.peer, slot(wait).peer_number)) {
      return Cause{.reason = Reason::kLost, .process = {}, .example = wait};
    }
    if (waits(*wait.peer)) return std::nullopt;
    return cause_in_peer(wait, Reason::kNotAccepted);
  }

  // The peer waits for nothing.
  Cause cause_in_peer(const WaitingEnd& wait, Reason otherwise) const {
    const std::optional<std::size_t> failed = last_failure(processes_[*wait.peer]);
    Cause cause = {.reason = failed ? Reason::kConnectionFailed : otherwise,
                   .process = wait.peer,
                   .example = wait};
    cause.failed = failed;
    return cause;
  }

  bool is_accepting(std::size_t process, std::uint32_t listener) const {
    return std::ranges::any_of(processes_[process].listeners, [&](const SlotView& slot) {
      return slot.number == listener && slot.waits_for == Wait::kAccept;
    });
  }

  // The processes that wait for a connection, nobody knows from whom.
  std::set<std::size_t> accepting() const {
    std::set<std::size_t> processes;
    for (const WaitingEnd& wait : waits_) {
      if (wait.is_listener && !wait.peer) processes.insert(wait.process);
    }
    return processes;
  }

  // A process that has made no connection may still wait, outside of Beeline, for the handle of a
  // rank that is missing. If one is, that is the cause, and the process is not.
  void blame_missing_ranks() {
    const auto missing = std::ranges::find(causes_, Reason::kRankMissing, &Cause::reason);
    if (missing == causes_.end()) return;
    Cause blamed = *missing;
    blamed.missing = missing_ranks(processes_, processes_[blamed.example.process]);
    std::erase_if(causes_, [&](const Cause& cause) {
      const bool is_consequence =
          cause.reason == Reason::kNotAccepted && !has_connections(processes_[*cause.process]);
      if (is_consequence) blamed.unconnected.push_back(*cause.process);
      return is_consequence || cause.reason == Reason::kRankMissing;
    });
    causes_.push_back(std::move(blamed));
  }

  // Nobody makes the connection that a listener waits for. If all ranks are here, it is one of
  // them: the one that has not begun, for whose handle others may wait outside of Beeline.
  void blame_for_unmet(Cause unmet) {
    const Process& waiting = processes_[unmet.example.process];
    const bool all_are_here = waiting.ranks && missing_ranks(processes_, waiting).empty();
    std::vector<std::size_t> not_begun;
    for (std::size_t p = 0; p < processes_.size() && all_are_here; ++p) {
      if (processes_[p].life == Life::kEnded || waits(p)) continue;
      unmet.unconnected.push_back(p);
      if (processes_[p].identity == 0) not_begun.push_back(p);
    }
    if (not_begun.empty()) {
      if (causes_.empty()) causes_.push_back(std::move(unmet));
      return;
    }
    std::vector<std::size_t> unconnected = {unmet.example.process};
    std::erase_if(causes_, [&](const Cause& cause) {
      const bool is_consequence =
          cause.reason == Reason::kNotAccepted && !has_connections(processes_[*cause.process]);
      if (is_consequence) unconnected.push_back(*cause.process);
      return is_consequence;
    });
    for (const std::size_t p : not_begun) {
      causes_.push_back({.reason = Reason::kNotBegun, .process = p, .example = unmet.example});
      causes_.back().unconnected = unconnected;
    }
  }

  // Where several connections of a process lose packets, their link is the likely cause, and not
  // the process whose credit is among them.
  void blame_links() {
    std::map<std::size_t, std::size_t> losses;  // by process
    for (const Cause& cause : causes_) {
      if (cause.reason != Reason::kLost && cause.reason != Reason::kCreditLost) continue;
      losses[cause.example.process] += cause.connections.size();
      if (cause.example.peer) losses[*cause.example.peer] += cause.connections.size();
    }
    for (Cause& cause : causes_) {
      if (cause.reason != Reason::kCreditLost) continue;
      if (losses[cause.example.process] == 1 && losses[*cause.example.peer] == 1) continue;
      cause.reason = Reason::kLost;
      cause.process.reset();
    }
    for (Cause& cause : std::exchange(causes_, {})) add(std::move(cause));  // some are equal now
  }

  // A process that has lost a peer, and caught the error, waits for nothing and is to blame for
  // nothing.
  void blame_deaths() {
    for (const Death& death : find_deaths(processes_)) {
      std::erase_if(causes_, [&](const Cause& cause) {
        return cause.reason == Reason::kConnectionFailed && cause.process == death.survivor;
      });
      const auto is_known = [&](const Cause& cause) {
        if (cause.reason != Reason::kEnded) return false;
        if (cause.process || death.process) return cause.process == death.process;
        return cause.death && failed_slot(*cause.death).peer_pid == failed_slot(death).peer_pid &&
               failed_slot(*cause.death).peer_host == failed_slot(death).peer_host;
      };
      auto known = std::ranges::find_if(causes_, is_known);
      if (known == causes_.end()) {
        causes_.push_back({.reason = Reason::kEnded, .process = death.process, .example = {}});
        known = causes_.end() - 1;
      }
      const bool is_first = !known->death || noticed_at_ns(death, processes_) <
                                                 noticed_at_ns(*known->death, processes_);
      if (is_first) known->death = death;
      known->survivors.insert(death.survivor);
    }
  }

  const SlotView& failed_slot(const Death& death) const {
    return processes_[death.witness].failed[death.failed];
  }

  static bool takes_no_part(Reason reason) {
    return reason == Reason::kNoReceive || reason == Reason::kNoSend ||
           reason == Reason::kNotAccepted;
  }

  bool is_same(const Cause& a, const Cause& b) const {
    if (takes_no_part(a.reason)) return takes_no_part(b.reason) && a.process == b.process;
    if (a.reason != b.reason) return false;
    if (a.reason == Reason::kCreditLost) return a.connections == b.connections;
    if (a.process || b.process) return a.process == b.process;
    if (a.reason == Reason::kElsewhere) {
      return slot(a.example).peer_pid == slot(b.example).peer_pid &&
             slot(a.example).peer_host == slot(b.example).peer_host &&
             slot(a.example).peer_identity == slot(b.example).peer_identity;
    }
    const bool is_unmade = slot(a.example).waits_for == Wait::kConnect;
    return is_unmade == (slot(b.example).waits_for == Wait::kConnect) &&
           devices_of(a.example) == devices_of(b.example);
  }

  // At both ends, in the same order for both.
  using Device = std::tuple<std::string, std::uint64_t, std::string>;  // host, process and name
  std::pair<Device, Device> devices_of(const WaitingEnd& wait) const {
    const Process& process = processes_[wait.process];
    const SlotView& own = slot(wait);
    const Device here(process.host, process.pid, own.device);
    const bool is_peer_here = wait.peer && wait.peer_connection;
    const Device there(own.peer_host, own.peer_pid,
                       is_peer_here ? peer_slot(wait).device : own.peer_device);
    return here < there ? std::pair(here, there) : std::pair(there, here);
  }

  static std::pair<End, End> ends_of(const WaitingEnd& wait) {
    const End own(wait.process, wait.connection);
    if (!wait.peer || !wait.peer_connection) return {own, own};
    const End other(*wait.peer, *wait.peer_connection);
    return own < other ? std::pair(own, other) : std::pair(other, own);
  }

  // Connections that wait for the same are one cause.
  void add(Cause cause) {
    if (cause.connections.empty()) cause.connections.insert(ends_of(cause.example));
    for (Cause& known : causes_) {
      if (!is_same(known, cause)) continue;
      known.connections.merge(cause.connections);
      if (known.example.ns >= cause.example.ns) return;
      cause.connections = std::move(known.connections);
      known = std::move(cause);
      return;
    }
    causes_.push_back(std::move(cause));
  }

  // The cause, and the processes from which the waits lead to it.
  std::set<std::size_t> waiting_for(const Cause& cause) const {
    std::set<std::size_t> reached;
    if (cause.reason == Reason::kEnded) {
      reached = cause.survivors;
      if (cause.process) reached.insert(*cause.process);
    } else if (cause.process) {
      reached.insert(*cause.process);
      reached.insert(cause.unconnected.begin(), cause.unconnected.end());
    } else if (cause.reason == Reason::kRankMissing) {
      reached = waiting_for_missing();
      reached.insert(cause.unconnected.begin(), cause.unconnected.end());
    } else {
      reached.insert(cause.example.process);
      if (cause.example.peer) reached.insert(*cause.example.peer);
    }
    return leading_to(std::move(reached));
  }

  std::set<std::size_t> waiting_for_missing() const {
    std::set<std::size_t> processes;
    for (const WaitingEnd& wait : waits_) {
      const Wait what = slot(wait).waits_for;
      const bool is_unmade = what == Wait::kConnect || what == Wait::kAccept;
      if (is_unmade && !wait.peer) processes.insert(wait.process);
    }
    return processes;
  }

  // With the processes whose waits lead to these.
  std::set<std::size_t> leading_to(std::set<std::size_t> reached) const {
    for (std::size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const WaitingEnd& wait : waits_) {
        if (wait.peer && reached.contains(*wait.peer)) reached.insert(wait.process);
      }
    }
    return reached;
  }

  std::span<const Process> processes_;
  Peers peers_;
  std::vector<WaitingEnd> waits_;
  std::set<std::size_t> waiting_;  // processes
  // The processes that make calls for at least one connection that waits. A thread that waits for
  // one request may leave others untested.
  std::set<std::size_t> calling_;
  std::vector<Cause> causes_;
  std::optional<Cause> unmet_;  // the longest wait in accept() that nothing explains
};

}  // namespace

Analysis find_causes(std::span<const Process> processes, std::int64_t now_ns,
                     std::int64_t least_ns) {
  return Search(processes, now_ns).analyze(least_ns);
}

}  // namespace beeline::hang
