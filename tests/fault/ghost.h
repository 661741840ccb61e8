// SPDX-License-Identifier: Apache-2.0
//
// What is left in a fabric of a process that was killed long ago.
#pragma once

#include <fstream>
#include <string>

#include "softnic/fabric/fabric.h"

namespace beeline::test {

// Far from the seats that processes take, so that nobody clears it away by sitting down.
inline constexpr uint32_t kGhostSlot = 100;

inline void leave_a_ghost(const softnic::Fabric& fabric) {
  softnic::SlotRecord& slot = fabric.header().slots[kGhostSlot];
  slot.pid.store(0x7fffffff);
  slot.epoch.store(fabric.header().next_epoch.fetch_add(1));
  std::ofstream(fabric.dir() + "/arena." + std::to_string(kGhostSlot)) << "left behind";
}

}  // namespace beeline::test
