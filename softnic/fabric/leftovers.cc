// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/leftovers.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "softnic/fabric/events.h"

namespace softnic {

namespace fs = std::filesystem;

void remove_everything(const std::string& dir) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(dir, ignored)) {
    fs::remove_all(entry.path(), ignored);
  }
}

void remove_slot_files(const std::string& dir, uint32_t slot) {
  std::error_code ignored;
  fs::remove(dir + "/arena." + std::to_string(slot), ignored);
  for (const auto& entry : fs::directory_iterator(dir, ignored)) {
    const auto pipe = parse_event_pipe_name(entry.path().filename().string());
    if (pipe && pipe->slot == slot) fs::remove(entry.path(), ignored);
  }
}

void remove_leftovers(const Fabric& fabric) {
  for (uint32_t slot = 0; slot < kMaxSlots; ++slot) {
    SlotRecord& record = fabric.header().slots[slot];
    if (record.epoch.load() == 0 || fabric.slot_alive(slot)) continue;
    remove_slot_files(fabric.dir(), slot);
    record.epoch.store(0);
  }
}

}  // namespace softnic
