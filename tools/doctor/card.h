// SPDX-License-Identifier: Apache-2.0
//
// The facts of a host that should be the same on all hosts of a job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin/checks/host.h"

namespace beeline::doctor {

// Name and value: {"mlx5_0: firmware", "28.39.1002"}. Devices in their order, then settings.
using Card = std::vector<std::pair<std::string, std::string>>;

Card card_of(const checks::Host& host);

}  // namespace beeline::doctor
