// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/peers.h"

#include "tools/hang/unmade.h"

namespace beeline::hang {

using pages::Life;
using pages::Process;

Peers::Peers(std::span<const Process> processes) : processes_(processes) {
  // The number of a process that has ended may be in use again.
  for (const bool has_ended : {true, false}) {
    for (std::size_t p = 0; p < processes.size(); ++p) {
      if ((processes[p].life == Life::kEnded) == has_ended) add(p);
    }
  }
}

void Peers::add(std::size_t p) {
  const Process& process = processes_[p];
  by_pid_[{process.host, process.pid}] = p;
  if (process.identity != 0) by_identity_[process.identity] = p;
  for (std::size_t c = 0; c < process.connections.size(); ++c) {
    const SlotView& slot = process.connections[c];
    if (slot.peer_pid == 0) continue;  // not made yet
    by_number_[{process.host, process.pid, slot.number}] = {p, c};
  }
}

void Peers::find(WaitingEnd& wait) const {
  const SlotView& slot = slot_of(wait, processes_);
  switch (slot.waits_for) {
    case Wait::kConnect: {
      const auto found = by_identity_.find(slot.peer_identity);
      if (found != by_identity_.end()) wait.peer = found->second;
      return;
    }
    case Wait::kAccept: return find_failed(wait);
    case Wait::kNothing:
    case Wait::kCredit:
    case Wait::kData:
    case Wait::kAcknowledgment:
    case Wait::kTest:
    case Wait::kPath: return find_by_number(wait, slot);
  }
}

void Peers::find_by_number(WaitingEnd& wait, const SlotView& slot) const {
  const auto peer_pid = static_cast<std::int64_t>(slot.peer_pid);
  const auto found = by_number_.find({slot.peer_host, peer_pid, slot.peer_number});
  if (found != by_number_.end()) {
    const auto [peer, connection] = found->second;
    if (processes_[peer].connections[connection].peer_number == slot.number) {
      wait.peer = peer;
      wait.peer_connection = connection;
      return;
    }
  }
  // A connection is in the page of the accepting process only once it has called accept(). Until
  // then it grants nothing.
  if (slot.waits_for != Wait::kCredit) return;
  const auto process = by_pid_.find({slot.peer_host, peer_pid});
  if (process == by_pid_.end() || processes_[process->second].slots_refused != 0) return;
  wait.peer = process->second;
}

// A listener does not know who is to connect to it, but a process that has tried does.
void Peers::find_failed(WaitingEnd& wait) const {
  const std::uint64_t identity = processes_[wait.process].identity;
  if (identity == 0) return;
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    if (processes_[p].life == Life::kRuns && has_failed_to_reach(processes_[p], identity)) {
      wait.peer = p;
      return;
    }
  }
}

}  // namespace beeline::hang
