// SPDX-License-Identifier: Apache-2.0
// The faults of a port as text, in the form of the commands that cause them.
#pragma once

#include <cstdint>
#include <string>

#include "softnic/fabric/layout.h"

namespace softnic::cli {

// "loss=2.5% paused removed"; "-" if there are none.
std::string faults_text(const DeviceRecord& device, const PortRecord& port);

// "scatter hide bunch=50us"; empty if there are none.
std::string hazards_text(const HazardRecord& hazards);

}  // namespace softnic::cli
