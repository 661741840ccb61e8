// SPDX-License-Identifier: Apache-2.0
//
// The faults of a schedule, as they begin and end.
#include "tests/plugin/simulation/world.h"

namespace beeline::simulation {

void World::begin(const Fault& fault) {
  if (is_over_) return;
  Process& process = *processes_[fault.host];
  Process& other = *processes_[fault.other_host];
  Nic& nic = process.nic(fault.nic);
  Nic& far = other.nic(fault.other_nic);
  note(static_cast<std::uint64_t>(fault.kind));
  switch (fault.kind) {
    case FaultKind::kPortDown:
      if (nic.is_removed()) return;
      network_.set_up(nic.port(), false);
      return process.tell(fault.nic, verbs::EventKind::kPortError, draws_.between(0, 3 * kMs));
    case FaultKind::kPortSilent:
      if (!nic.is_removed()) network_.set_up(nic.port(), false);
      return;
    case FaultKind::kFalseEvent: return process.tell(fault.nic, verbs::EventKind::kPortError, 0);
    case FaultKind::kOneWay:
      return network_.set_fault(nic.port(), far.port(), {.loss_percent = 100});
    case FaultKind::kBothWays:
      network_.set_fault(nic.port(), far.port(), {.loss_percent = 100});
      return network_.set_fault(far.port(), nic.port(), {.loss_percent = 100});
    case FaultKind::kLoss:
      return network_.set_fault(nic.port(), far.port(), {.loss_percent = fault.amount});
    case FaultKind::kDelay:
      return network_.set_fault(nic.port(), far.port(), {.most_delay_ns = fault.amount * kMs});
    case FaultKind::kDoubled:
      return network_.set_fault(nic.port(), far.port(), {.doubled_percent = fault.amount});
    case FaultKind::kRemoved: return process.remove(fault.nic, draws_.between(0, 20 * kMs));
    case FaultKind::kNewAddress:
      nic.change_gid();
      return process.tell(fault.nic, verbs::EventKind::kGidChange, draws_.between(0, 3 * kMs));
    case FaultKind::kStatus:
      nic.hazards().next_status = static_cast<ibv_wc_status>(fault.amount);
      return;
    case FaultKind::kNoErrorState: nic.hazards().refuses_error_state = true; return;
    case FaultKind::kNoPosts: nic.hazards().refuses_posts = true; return;
    case FaultKind::kNoQueues: nic.hazards().refuses_queues = true; return;
    case FaultKind::kNoFlushes: nic.hazards().swallows_receives = true; return;
    case FaultKind::kNoReads: nic.hazards().answers_no_reads = true; return;
    case FaultKind::kControlCut: return channel_between(process, other).cut();
    case FaultKind::kControlMute: return channel_between(process, other).set_mute(process, true);
    case FaultKind::kStopped: return process.stop_until(agenda_.now() + fault.for_ns);
    case FaultKind::kNoCalls: {
      const Pair& pair = pairs_[fault.amount % pairs_.size()];
      const std::int64_t until = agenda_.now() + fault.for_ns;
      return fault.host == 0 ? pair.sender->pause_until(until) : pair.receiver->pause_until(until);
    }
    case FaultKind::kSlowControl: return process.set_order_time(fault.amount * kMs);
    case FaultKind::kKilled: return process.kill();
    case FaultKind::kDiscards: nic.hazards().discards = true; return;
    case FaultKind::kLostCompletions: nic.hazards().loses_completions = true; return;
    case FaultKind::kFalseFence: nic.hazards().fences_falsely = true; return;
    case FaultKind::kNoAccess: nic.hazards().refuses_data = true; return;
  }
}

void World::end(const Fault& fault) {
  Process& process = *processes_[fault.host];
  Process& other = *processes_[fault.other_host];
  Nic& nic = process.nic(fault.nic);
  Nic& far = other.nic(fault.other_nic);
  switch (fault.kind) {
    case FaultKind::kPortDown:
    case FaultKind::kPortSilent:
      if (nic.is_removed() || network_.is_up(nic.port())) return;
      network_.set_up(nic.port(), true);
      return process.tell(fault.nic, verbs::EventKind::kPortActive, draws_.between(0, 3 * kMs));
    case FaultKind::kOneWay:
    case FaultKind::kLoss:
    case FaultKind::kDelay:
    case FaultKind::kDoubled: return network_.set_fault(nic.port(), far.port(), {});
    case FaultKind::kBothWays:
      network_.set_fault(nic.port(), far.port(), {});
      return network_.set_fault(far.port(), nic.port(), {});
    case FaultKind::kRemoved: return process.bring_back(fault.nic);
    case FaultKind::kNoErrorState: nic.hazards().refuses_error_state = false; return;
    case FaultKind::kNoPosts: nic.hazards().refuses_posts = false; return;
    case FaultKind::kNoQueues: nic.hazards().refuses_queues = false; return;
    case FaultKind::kNoFlushes: nic.hazards().swallows_receives = false; return;
    case FaultKind::kNoReads: nic.hazards().answers_no_reads = false; return;
    case FaultKind::kDiscards: nic.hazards().discards = false; return;
    case FaultKind::kFalseFence: nic.hazards().fences_falsely = false; return;
    case FaultKind::kNoAccess: nic.hazards().refuses_data = false; return;
    case FaultKind::kLostCompletions: nic.hazards().loses_completions = false; return;
    case FaultKind::kControlCut: return channel_between(process, other).restore();
    case FaultKind::kControlMute: return channel_between(process, other).set_mute(process, false);
    case FaultKind::kSlowControl: return process.set_order_time(200 * kUs);
    case FaultKind::kFalseEvent:
    case FaultKind::kNewAddress:
    case FaultKind::kStatus:
    case FaultKind::kStopped:
    case FaultKind::kNoCalls:
    case FaultKind::kKilled: return;
  }
}

void World::end_all() {
  network_.clear_faults();
  for (const Fault& fault : options_.faults) {
    if (fault.for_ns != 0 && fault.kind != FaultKind::kKilled) end(fault);
  }
  for (const auto& process : processes_) {
    process->stop_until(0);
    for (std::size_t i = 0; i < options_.nics; ++i) {
      process->nic(i).hazards().next_status = IBV_WC_SUCCESS;
    }
  }
  is_over_ = true;
  for (const Pair& pair : pairs_) {
    pair.sender->pause_until(0);
    pair.receiver->pause_until(0);
  }
  for (std::uint32_t host = 0; host < options_.hosts; ++host) wake(host);
}

}  // namespace beeline::simulation
