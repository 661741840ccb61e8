// SPDX-License-Identifier: Apache-2.0
// Parses and prints rates ("200M", "max"), times ("50us") and shares ("2.5%"), in the same form for
// fabric files, `softnic ctl` and `softnic ls`.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"

namespace softnic {

// Bytes per second with an optional decimal k, M or G. "max" means no limit and gives 0.
beeline::Outcome<std::uint64_t> parse_rate(const std::string& text);

// Nanoseconds from a number with ns, us, ms or s, at most 100 s. "0" needs no unit.
beeline::Outcome<std::uint64_t> parse_duration_ns(const std::string& text);
// The same up to one day, for the duration of a script or a test.
beeline::Outcome<std::uint64_t> parse_long_duration_ns(const std::string& text);

// Parts per million from "2.5%" or "100ppm", at most 100%. "0" needs no unit.
beeline::Outcome<std::uint64_t> parse_share_ppm(const std::string& text);

std::string rate_text(std::uint64_t bytes_per_second);
std::string duration_text(std::uint64_t ns);
std::string share_text(std::uint64_t ppm);

}  // namespace softnic
