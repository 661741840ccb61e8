// SPDX-License-Identifier: Apache-2.0
//
// The slot and the arena file that a process leaves in a fabric when it is killed.
#pragma once

#include <fstream>
#include <string>

#include "softnic/fabric/fabric.h"

namespace beeline::test {

// Far beyond the slots that new processes take, so that none of them reuses it.
inline constexpr uint32_t kStaleSlot = 100;

inline void leave_stale_slot(const softnic::Fabric& fabric) {
  softnic::SlotRecord& slot = fabric.header().slots[kStaleSlot];
  slot.pid.store(0x7fffffff);
  slot.epoch.store(fabric.header().next_epoch.fetch_add(1));
  std::ofstream(fabric.dir() + "/arena." + std::to_string(kStaleSlot)) << "left behind";
}

}  // namespace beeline::test
