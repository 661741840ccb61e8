// SPDX-License-Identifier: Apache-2.0
// Rates and times as people write them: "200M" and "max", "50us". One spelling for fabric files,
// for `softnic ctl` and for what `softnic ls` prints.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/base/result.h"

namespace softnic {

// Bytes per second with an optional decimal k, M or G; "max" is 0, the word for no limit.
beeline::Result<uint64_t, std::string> parse_rate(const std::string& text);

// Nanoseconds from ns, us, ms or s; plain "0" needs no unit.
beeline::Result<uint64_t, std::string> parse_duration_ns(const std::string& text);

std::string rate_text(uint64_t bytes_per_second);
std::string duration_text(uint64_t ns);

}  // namespace softnic
