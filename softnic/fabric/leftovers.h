// SPDX-License-Identifier: Apache-2.0
// Clearing away files of a fabric. Callers hold the directory's lock (DirLock).
#pragma once

#include <cstdint>

#include "softnic/fabric/fabric.h"

namespace softnic {

void remove_slot_files(const OwnDir& dir, std::uint32_t slot);
void remove_leftovers(const Fabric& fabric);  // files and seats of dead processes

}  // namespace softnic
