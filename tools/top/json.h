// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tools/top/rates.h"

namespace beeline::top {

// What the text shows, and all connections, for other programs.
std::string json_of(std::span<const ProcessRate> rates, std::int64_t now_ns);

}  // namespace beeline::top
