// SPDX-License-Identifier: Apache-2.0
//
// A comm together with the object that handles its failures, as one object: NCCL's threads must not
// allocate while they connect.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "plugin/recovery/recover.h"
#include "plugin/transfer/comm.h"

namespace beeline {

// A base class, to be made before the comm and destroyed after it.
struct RecoverHolder {
  RecoverHolder(const RepairLimits& limits, std::int64_t ask_after_ns) noexcept
      : events(limits, ask_after_ns) {}
  Recover events;
};

// `End` is SendComm or RecvComm.
template <class End>
class Guarded final : private RecoverHolder, public End {
 public:
  Guarded(std::unique_ptr<Connection> connection, const CommOptions& options,
          StatsSlot stats) noexcept
      : RecoverHolder({.give_up_ns = options.give_up_ns,
                       .device_ns = options.device_ns,
                       .peer_ns = options.peer_ns},
                      options.ask_after_ns),
        End(std::move(connection), options, std::move(stats), events) {
    End::begin_service();
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { End::end_service(); }
};

}  // namespace beeline
