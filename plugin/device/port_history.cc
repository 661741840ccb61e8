// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/port_history.h"

namespace beeline {

void PortHistory::record(verbs::EventKind kind, std::int64_t now_ns) noexcept {
  switch (kind) {
    case verbs::EventKind::kPortError:
      went_down_ns_.store(now_ns, std::memory_order_relaxed);
      break;
    case verbs::EventKind::kPortActive: came_up_ns_.store(now_ns, std::memory_order_relaxed); break;
    case verbs::EventKind::kGidChange:
      gids_changed_ns_.store(now_ns, std::memory_order_relaxed);
      break;
    case verbs::EventKind::kPkeyChange:
      pkeys_changed_ns_.store(now_ns, std::memory_order_relaxed);
      break;
    case verbs::EventKind::kLidChange:
    case verbs::EventKind::kSmChange:
    case verbs::EventKind::kDeviceFatal:
    case verbs::EventKind::kCqError:
    case verbs::EventKind::kQpFatal:
    case verbs::EventKind::kOther: break;
  }
}

}  // namespace beeline
