// SPDX-License-Identifier: Apache-2.0
// What is wrong with a port, in the words of `softnic ctl`.
#pragma once

#include <cstdint>
#include <string>

#include "softnic/fabric/layout.h"

namespace softnic::cli {

// "loss=2.5% paused removed"; "-" for a port without fault.
std::string faults_text(const DeviceRecord& device, const PortRecord& port);

// "scatter hide bunch=50us"; empty for none.
std::string hazards_text(const HazardRecord& hazards);

}  // namespace softnic::cli
