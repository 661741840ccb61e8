// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/fence.h"

#include <sched.h>

#include "softnic/nic/qp.h"

namespace softnic {
namespace {

constexpr std::uint32_t kSpinsBeforeYield = 256;
constexpr std::uint32_t kYieldsBeforeAsking = 256;

// `is_gone` asks whether the requester's process is dead. It is called after long waits only.
template <class IsGone>
void wait_until_not_busy(const Shared<std::uint32_t>& busy, IsGone&& is_gone) {
  const std::uint32_t seen = busy.load(std::memory_order_seq_cst);
  if (seen % 2 == 0) return;
  for (std::uint32_t spins = 1; busy.load() == seen; ++spins) {
    if (spins % kSpinsBeforeYield != 0) {
      cpu_pause();
      continue;
    }
    ::sched_yield();
    if (spins % (kSpinsBeforeYield * kYieldsBeforeAsking) == 0 && is_gone()) return;
  }
}

}  // namespace

void wait_for_requester(Runtime& runtime, std::uint32_t qpn) {
  // The peer may be alive although it cannot be opened, for example if no descriptor is left.
  auto peer = runtime.peer(qpn_slot(qpn));
  while (!peer && runtime.fabric().is_slot_alive(qpn_slot(qpn))) {
    ::sched_yield();
    peer = runtime.peer(qpn_slot(qpn));
  }
  if (!peer) return;
  wait_until_not_busy(peer->arena().qp(qpn_index(qpn)).busy, [&] { return !peer->is_alive(); });
}

void wait_for_all_requesters(Runtime& runtime) {
  runtime.qps().for_each([&](Qp& qp) {
    wait_until_not_busy(qp.record().busy, [] { return false; });
    const std::uint32_t dest = qp.record().dest_qpn.load();
    if (dest != 0) wait_for_requester(runtime, dest);
  });
}

}  // namespace softnic
