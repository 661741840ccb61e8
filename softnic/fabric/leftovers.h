// SPDX-License-Identifier: Apache-2.0
// Removes files of processes that have ended. Callers hold the directory's lock (DirLock).
#pragma once

#include <cstdint>

#include "softnic/fabric/fabric.h"

namespace softnic {

void remove_slot_files(const PrivateDir& dir, std::uint32_t slot);
void remove_leftovers(const Fabric& fabric);  // files and slots of dead processes

}  // namespace softnic
