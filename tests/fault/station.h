// SPDX-License-Identifier: Apache-2.0
//
// All that a worker has on one device: memory, one completion queue for both directions, one queue
// pair, and the books on what it posted.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "tests/fault/ledger.h"
#include "tests/support/verbs_connect.h"

namespace beeline::test {

// What a peer must know of a station.
struct StationCard {
  QpAddress address;
  Region memory;
};

// A dead peer is noticed after 8 * 67 ms, on the scenario's fabric a hundred times sooner.
inline constexpr Wire kQuickWire = {.timeout = 14};

struct Station {
  static constexpr size_t kBytes = 1u << 20;

  explicit Station(const std::string& device);

  void connect_to(Link& link);
  // The queue pair is broken on purpose: what is open ends now, each request exactly once.
  void settle();

  ContextPtr context;
  PdPtr pd;
  CqPtr cq;
  Buffer memory;
  QpPtr owned_qp;
  ibv_qp* qp;
  Ledger ledger;
  Region theirs;  // the peer's memory
};

CqPtr make_cq_of(ibv_context* context, int entries);
// A queue pair whose two directions complete into CQ.
QpPtr make_shared_cq_qp(ibv_pd* pd, ibv_cq* cq);

// The three devices of the scenario's fabric: an undisturbed one, a shaped one, and one whose first
// payload is spoilt and whose second request fails.
struct World {
  Station plain{"softnic0"};
  Station shaped{"softnic1"};
  Station armed{"softnic2"};

  std::array<Station*, 3> all() { return {&plain, &shaped, &armed}; }
};

}  // namespace beeline::test
