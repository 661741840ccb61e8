// SPDX-License-Identifier: Apache-2.0
//
// The error counters of all ports, read twice. Only their growth matters: counters also contain
// what happened while the fabric was being built.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "plugin/checks/tree.h"

namespace beeline::checks {

using Counters = std::map<std::string, std::uint64_t>;  // by path

// `above` is put before each path: the second reading of a recorded host is in a folder of its own.
Counters read_counters(const Tree& tree, const std::string& above = "");

struct CounterSamples {
  Counters first = {};
  Counters second = {};  // empty: there was no second reading
};

}  // namespace beeline::checks
