// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/leftovers.h"

#include <string>

#include "softnic/fabric/events.h"

namespace softnic {

void remove_slot_files(const PrivateDir& dir, std::uint32_t slot) {
  dir.remove_file("arena." + std::to_string(slot));
  dir.for_each([&](const std::string& name) {
    const auto pipe = parse_event_pipe_name(name);
    if (pipe && pipe->slot == slot) dir.remove_file(name);
  });
}

void remove_leftovers(const Fabric& fabric) {
  for (std::uint32_t slot = 0; slot < kMaxSlots; ++slot) {
    SlotRecord& record = fabric.header().slots[slot];
    if (record.epoch.load() == 0 || fabric.is_slot_alive(slot)) continue;
    remove_slot_files(fabric.files(), slot);
    record.epoch.store(0);
  }
}

}  // namespace softnic
