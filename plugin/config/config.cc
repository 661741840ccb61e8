// SPDX-License-Identifier: Apache-2.0
//
// From the environment to a Config, with a word to the user about everything that was found.
#include "plugin/config/config.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/base/log.h"
#include "plugin/config/nearest.h"

namespace beeline {
namespace {

constexpr unsigned long kLogFlags = kLogInit | kLogEnv;

struct Setting {
  std::string variable;
  std::string text;
};

std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Where the value comes from: our own name wins over NCCL's.
std::optional<Setting> find_setting(const Environ& environ, std::string_view name,
                                    std::string_view honours) {
  const std::string ours = std::string(kParamPrefix) + std::string(name);
  if (const auto text = environ.get(ours)) return Setting{ours, std::string(trim(*text))};
  if (honours.empty()) return std::nullopt;
  if (const auto text = environ.get(honours)) {
    return Setting{std::string(honours), std::string(trim(*text))};
  }
  return std::nullopt;
}

template <class Rule>
void warn_refused(const Setting& setting, Refusal refusal, const Rule& rule,
                  const std::string& kept) {
  const std::string allowed = rule.allowed();
  switch (refusal) {
    case Refusal::kOutOfRange:
      BL_WARN("%s=%s is out of range (%s); using %s", setting.variable.c_str(),
              setting.text.c_str(), allowed.c_str(), kept.c_str());
      return;
    case Refusal::kUnreadable:
      BL_WARN("%s=%s is not understood (%s); using %s", setting.variable.c_str(),
              setting.text.c_str(), allowed.c_str(), kept.c_str());
      return;
  }
}

// One row of the table. `value` holds the default.
template <class Rule>
void load_param(const Environ& environ, const Rule& rule, std::string_view name,
                std::string_view honours, typename Rule::Value* value) {
  const std::optional<Setting> setting = find_setting(environ, name, honours);
  if (!setting) return;
  Parsed<typename Rule::Value> parsed = rule.parse(setting->text);
  if (!parsed) {
    warn_refused(*setting, parsed.error(), rule, rule.print(*value));
    return;
  }
  *value = *std::move(parsed);
  BL_INFO(kLogFlags, "%s=%s (from %s)", std::string(name).c_str(), rule.print(*value).c_str(),
          setting->variable.c_str());
}

// What NCCL's own transport reads and this plugin has no use for.
constexpr std::array<std::string_view, 11> kWithoutEffect = {
    "NCCL_IB_DATA_DIRECT",          "NCCL_IB_FIFO_TC",
    "NCCL_IB_MERGE_NICS",           "NCCL_IB_MERGE_VFS",
    "NCCL_IB_MQP_RETRY_ALL",        "NCCL_IB_MQP_RETRY_CNT",
    "NCCL_IB_MQP_RETRY_SLEEP_MSEC", "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETURN_ASYNC_EVENTS",  "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_WARN_RAIL_LOCAL"};

void say_what_has_no_effect(const Environ& environ) {
  std::string names;
  for (const std::string_view name : kWithoutEffect) {
    if (environ.get(name)) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (!names.empty()) BL_INFO(kLogFlags, "set, and without effect here: %s", names.c_str());
}

void warn_unknown(const Environ& environ) {
  std::vector<std::string_view> known;
#define BL_PARAM(field, name, rule, default_value, since, honours, help) known.push_back(name);
#include "plugin/config/params.def"
#undef BL_PARAM
  for (const Environ::Variable& variable : environ.variables()) {
    std::string_view name = variable.name;
    if (!name.starts_with(kParamPrefix)) continue;
    name.remove_prefix(kParamPrefix.size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant(nearest(name, known));
    if (meant.empty()) {
      BL_WARN("%s is no parameter of this version", variable.name.c_str());
    } else {
      BL_WARN("%s is no parameter of this version; did you mean BEELINE_%s?", variable.name.c_str(),
              meant.c_str());
    }
  }
}

}  // namespace

Config load_config(const Environ& environ) {
  Config config;
#define BL_PARAM(field, name, rule, default_value, since, honours, help) \
  load_param(environ, rule, name, honours, &config.field);
#include "plugin/config/params.def"
#undef BL_PARAM
  config.gid_index_is_for_roce =
      config.gid_index >= 0 && !environ.get(std::string(kParamPrefix) + "GID_INDEX");
  warn_unknown(environ);
  say_what_has_no_effect(environ);
  return config;
}

std::vector<ParamText> param_texts() {
  const Config defaults;
  std::vector<ParamText> rows;
#define BL_PARAM(field, name, rule, default_value, since, honours, help)                       \
  rows.push_back({name, decltype(rule)::kKind, (rule).allowed(), (rule).print(defaults.field), \
                  since, honours, help});
#include "plugin/config/params.def"
#undef BL_PARAM
  return rows;
}

}  // namespace beeline
