// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/config.h"

#include <algorithm>
#include <utility>

#include "plugin/config/nearest.h"

namespace beeline {
namespace {

// From this value on, a device takes 34 s or more to report a dead path.
constexpr int kLongTimeout = 20;

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

// The BEELINE_ variable if it is set, otherwise NCCL's.
std::optional<Setting> find_setting(const Environ& environ, std::string_view name,
                                    std::string_view honors) {
  const std::string ours = std::string(kParamPrefix) + std::string(name);
  if (const auto text = environ.get(ours)) return Setting{ours, std::string(trim(*text))};
  if (honors.empty()) return std::nullopt;
  if (const auto text = environ.get(honors)) {
    return Setting{std::string(honors), std::string(trim(*text))};
  }
  return std::nullopt;
}

using Findings = std::vector<Finding>;

template <class Rule>
Finding refused(const Setting& setting, Refusal refusal, const Rule& rule,
                const std::string& kept) {
  const bool is_read = refusal == Refusal::kOutOfRange;
  return {.id = is_read ? "setting-out-of-range" : "setting-not-understood",
          .severity = Severity::kWarning,
          .subject = setting.variable,
          .fact = setting.variable + "=" + setting.text +
                  (is_read ? " is out of range (" : " is not understood (") + rule.allowed() +
                  "); using " + kept};
}

// One row of the table. `value` holds the default.
template <class Rule>
void load_param(const Environ& environ, const Rule& rule, std::string_view name,
                std::string_view honors, typename Rule::Value* value, Findings& findings) {
  const std::optional<Setting> setting = find_setting(environ, name, honors);
  if (!setting) return;
  Parsed<typename Rule::Value> parsed = rule.parse(setting->text);
  if (!parsed) {
    findings.push_back(refused(*setting, parsed.error(), rule, rule.print(*value)));
    return;
  }
  *value = *std::move(parsed);
  findings.push_back(
      {.id = "setting",
       .subject = std::string(name),
       .fact = std::string(name) + "=" + rule.print(*value) + " (from " + setting->variable + ")"});
}

void find_unknown(const Environ& environ, Findings& findings) {
  std::vector<std::string_view> known;
#define BL_PARAM(field, name, rule, default_value, since, honors, summary, help) \
  known.push_back(name);
#include "plugin/config/params.def"
#undef BL_PARAM
  for (const Environ::Variable& variable : environ.variables()) {
    std::string_view name = variable.name;
    if (!name.starts_with(kParamPrefix)) continue;
    name.remove_prefix(kParamPrefix.size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant(nearest(name, known));
    findings.push_back({.id = "setting-unknown",
                        .severity = Severity::kWarning,
                        .subject = variable.name,
                        .fact = variable.name + " is no parameter of this version" +
                                (meant.empty() ? "" : "; did you mean BEELINE_" + meant + "?")});
  }
}

std::vector<std::string_view> honored_names() {
  std::vector<std::string_view> names;
#define BL_PARAM(field, name, rule, default_value, since, honors, summary, help) \
  names.push_back(honors);
#include "plugin/config/params.def"
#undef BL_PARAM
  std::erase(names, std::string_view());
  return names;
}

}  // namespace

LoadedConfig load_config(const Environ& environ) {
  LoadedConfig loaded;
  Config& config = loaded.config;
#define BL_PARAM(field, name, rule, default_value, since, honors, summary, help) \
  load_param(environ, rule, name, honors, &config.field, loaded.findings);
#include "plugin/config/params.def"
#undef BL_PARAM
  config.gid_index_is_for_roce =
      config.gid_index >= 0 && !environ.get(std::string(kParamPrefix) + "GID_INDEX");
  find_unknown(environ, loaded.findings);
  for (Finding& finding : find_nccl_variables(environ, honored_names())) {
    loaded.findings.push_back(std::move(finding));
  }
  return loaded;
}

std::vector<ParamValue> effective_values(const Environ& environ) {
  std::vector<ParamValue> rows;
  const auto add = [&](const auto& rule, std::string_view name, std::string_view honors,
                       auto value) {
    ParamValue row = {.name = name, .default_value = rule.print(value)};
    Findings findings;
    load_param(environ, rule, name, honors, &value, findings);
    if (!findings.empty() && findings.front().id == "setting")
      row.source = find_setting(environ, name, honors)->variable;
    row.value = rule.print(value);
    rows.push_back(std::move(row));
  };
  const Config defaults;
#define BL_PARAM(field, name, rule, default_value, since, honors, summary, help) \
  add(rule, name, honors, defaults.field);
#include "plugin/config/params.def"
#undef BL_PARAM
  return rows;
}

std::optional<LongTimeout> long_timeout(const Config& config, const Environ& environ) {
  if (!config.recovery || config.timeout < kLongTimeout) return std::nullopt;
  // By the formula of docs/faults.md.
  const std::int64_t least_ns = (std::int64_t{4096} << config.timeout) * (config.retry_cnt + 1);
  if (config.stall_timeout_ns != 0 && config.stall_timeout_ns <= least_ns) return std::nullopt;
  for (const char* const variable : {"BEELINE_TIMEOUT", "NCCL_IB_TIMEOUT"}) {
    if (environ.get(variable)) return LongTimeout{.variable = variable, .least_ns = least_ns};
  }
  return std::nullopt;
}

std::vector<ParamText> param_texts() {
  const Config defaults;
  std::vector<ParamText> rows;
  std::string_view group;
#define BL_GROUP(title) group = title;
#define BL_PARAM(field, name, rule, default_value, since, honors, summary, help) \
  rows.push_back({group, name, decltype(rule)::kKind, (rule).allowed(),          \
                  (rule).print(defaults.field), since, honors, summary, help});
#include "plugin/config/params.def"
#undef BL_PARAM
  return rows;
}

}  // namespace beeline
