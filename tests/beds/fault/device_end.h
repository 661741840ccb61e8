// SPDX-License-Identifier: Apache-2.0
//
// A worker's objects on one device: memory, one completion queue for both directions, one queue
// pair, and a ledger of its requests.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "tests/beds/fault/ledger.h"
#include "tests/support/verbs_connect.h"

namespace beeline::test {

// What the peer must know of a DeviceEnd.
struct DeviceEndCard {
  QpAddress address;
  Region memory;
};

// A dead peer is noticed after 8 * 67 ms; on the scenario's fabric, in a hundredth of that.
inline constexpr Wire kQuickWire = {.timeout = 14};

struct DeviceEnd {
  static constexpr size_t kBytes = 1u << 20;

  explicit DeviceEnd(const std::string& device);

  void connect_to(Link& link);
  // Moves the queue pair to ERR, so that all pending requests complete, each exactly once.
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
// A queue pair that uses `cq` for both directions.
QpPtr make_shared_cq_qp(ibv_pd* pd, ibv_cq* cq);

// The three devices of the scenario's fabric: a plain one, one with a limited rate, and one whose
// first payload is corrupted and whose second request fails.
struct DeviceEnds {
  DeviceEnd plain{"softnic0"};
  DeviceEnd shaped{"softnic1"};
  DeviceEnd armed{"softnic2"};

  std::array<DeviceEnd*, 3> all() { return {&plain, &shaped, &armed}; }
};

}  // namespace beeline::test
