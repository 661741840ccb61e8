// SPDX-License-Identifier: Apache-2.0
//
// The parameters of the plugin, which are read from the environment once. params.def is their
// table. A parameter is set by BEELINE_NAME or by the NCCL variable that it honors; otherwise it
// has its default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/finding.h"
#include "plugin/config/environ.h"
#include "plugin/config/rule.h"

namespace beeline {

// A default-constructed Config has the defaults.
struct Config {
#define BL_PARAM(field, name, rule, default_value, since, honors, summary, help) \
  decltype(rule)::Value field = default_value;
#include "plugin/config/params.def"
#undef BL_PARAM
  // GID_INDEX comes from NCCL_IB_GID_INDEX, which NCCL does not apply to InfiniBand.
  bool gid_index_is_for_roce = false;
};

// A note for each value that was set, and a warning for each that was refused and for each unknown
// BEELINE_ name; and what find_nccl_variables() finds. The ids are setting,
// settings-without-effect, setting-out-of-range, setting-not-understood and setting-unknown; the
// subject is the parameter or the variable.
struct LoadedConfig {
  Config config;
  std::vector<Finding> findings;
};
// Reads the environment. Never fails: a value that is refused leaves the default.
LoadedConfig load_config(const Environ& environ);

// The variables of NCCL's own InfiniBand and RoCE transport that the plugin does not read. A site
// that has set them for NCCL is told that they have no effect here.
//
// settings-without-effect: one note that names those that are set, and that NCCL has.
// setting-unknown: for each NCCL_IB_ name that NCCL is not known to have. A warning if one letter
// of a name in `honored` is wrong, since the user expects an effect; otherwise a note, because a
// newer NCCL may have that name.
std::vector<Finding> find_nccl_variables(const Environ& environ,
                                         const std::vector<std::string_view>& honored);

// A parameter as it is in this environment.
struct ParamValue {
  std::string_view name = {};
  std::string value = {};
  std::string default_value = {};
  std::string source = {};  // the variable that sets it; empty: none, or its value was refused
};
std::vector<ParamValue> effective_values(const Environ& environ);

// A timeout with which a device reports a dead path late.
struct LongTimeout {
  std::string variable;       // that sets it: "NCCL_IB_TIMEOUT"
  std::int64_t least_ns = 0;  // until the device reports; it may take up to four times as long
};
// Empty if the timeout is not long, or if nothing waits for it.
std::optional<LongTimeout> long_timeout(const Config& config, const Environ& environ);

// A row of the table as text, for the documentation.
struct ParamText {
  std::string_view group;
  std::string_view name;
  std::string_view kind;
  std::string allowed;
  std::string default_value;
  std::string_view since;
  std::string_view honors;  // empty: none
  std::string_view summary;
  std::string_view help;
};
std::vector<ParamText> param_texts();
// docs/parameters.md.
std::string params_markdown();

inline constexpr std::string_view kParamPrefix = "BEELINE_";

}  // namespace beeline
