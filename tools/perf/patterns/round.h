// SPDX-License-Identifier: Apache-2.0
//
// A pattern sends each size more than once. What is sent differs from round to round, so that bytes
// of an earlier round are never taken for those of a later one.
#pragma once

#include <cstdint>

namespace beeline::perf {

enum Round : std::uint64_t { kFirst = 1, kWarmUp, kMeasured };  // kMeasured + 1 and so on follow

}  // namespace beeline::perf
