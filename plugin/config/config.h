// SPDX-License-Identifier: Apache-2.0
//
// All that can be set from outside, read once. params.def is the table; a parameter is set by
// BEELINE_NAME, or by the NCCL variable it honours, or keeps its default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/finding.h"
#include "plugin/config/choices.h"
#include "plugin/config/environ.h"
#include "plugin/config/rule.h"

namespace beeline {

// The defaults, as they stand. Whoever loads one hands it down as const.
struct Config {
#define BL_PARAM(field, name, rule, default_value, since, honours, help) \
  decltype(rule)::Value field = default_value;
#include "plugin/config/params.def"
#undef BL_PARAM
  // GID_INDEX comes from NCCL_IB_GID_INDEX, which NCCL does not apply to InfiniBand.
  bool gid_index_is_for_roce = false;
};

// A note for each value that was set, and a warning for each that was refused and for each unknown
// BEELINE_ name. The ids are setting, settings-without-effect, setting-out-of-range,
// setting-not-understood and setting-unknown; the subject is the parameter or the variable.
struct LoadedConfig {
  Config config;
  std::vector<Finding> findings;
};
// Reads the environment. Never fails: a value that is refused leaves the default.
LoadedConfig load_config(const Environ& environ);

// A row of the table, as text.
struct ParamText {
  std::string_view name;
  std::string_view kind;
  std::string allowed;
  std::string default_value;
  std::string_view since;
  std::string_view honours;  // empty: none
  std::string_view help;
};
std::vector<ParamText> param_texts();

inline constexpr std::string_view kParamPrefix = "BEELINE_";

}  // namespace beeline
