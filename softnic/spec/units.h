// SPDX-License-Identifier: Apache-2.0
// Rates, times and shares as people write them: "200M" and "max", "50us", "2.5%". One spelling for
// fabric files, for `softnic ctl` and for what `softnic ls` prints.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"

namespace softnic {

// Bytes per second with an optional decimal k, M or G; "max" is 0, the word for no limit.
beeline::Outcome<std::uint64_t> parse_rate(const std::string& text);

// Nanoseconds from ns, us, ms or s; plain "0" needs no unit. Up to 100 s.
beeline::Outcome<std::uint64_t> parse_duration_ns(const std::string& text);
// The same up to a day, for how long a script or a test runs.
beeline::Outcome<std::uint64_t> parse_long_duration_ns(const std::string& text);

// Parts per million from "2.5%" or "100ppm", up to all of them; plain "0" is none.
beeline::Outcome<std::uint64_t> parse_share_ppm(const std::string& text);

std::string rate_text(std::uint64_t bytes_per_second);
std::string duration_text(std::uint64_t ns);
std::string share_text(std::uint64_t ppm);

}  // namespace softnic
