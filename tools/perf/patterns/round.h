// SPDX-License-Identifier: Apache-2.0
//
// The rounds of a pattern, which sends each size several times. The contents differ from round to
// round, so that bytes of an earlier round are never mistaken for those of a later one.
#pragma once

#include <cstdint>

namespace beeline::perf {

enum Round : std::uint64_t { kFirst = 1, kWarmUp, kMeasured };  // kMeasured + 1 and so on follow

}  // namespace beeline::perf
