// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/findings.h"

#include <algorithm>
#include <stdexcept>

#include "plugin/checks/kinds.h"
#include "plugin/checks/words.h"

namespace beeline::checks {
namespace {

const Kind& kind_of(std::string_view id) {
  const Kind* const kind = find_kind(id);
  if (kind == nullptr) throw std::logic_error("no kind of finding: " + std::string(id));
  return *kind;
}

// Its place in the table.
std::size_t place_of(std::string_view id) noexcept {
  std::size_t place = 0;
  for (const Area& area : areas()) {
    for (const Kind& kind : area.kinds) {
      if (kind.id == id) return place;
      ++place;
    }
  }
  return place;
}

// Whether a place is left. "${" belongs to the shell.
bool has_place(std::string_view text) noexcept {
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    if (at == 0 || text[at - 1] != '$') return true;
  }
  return false;
}

// Puts the values in the places of their names. Nothing if one is missing.
std::optional<std::string> filled(std::string_view command, Values values) {
  std::string text(command);
  for (const auto& [name, value] : values) {
    const std::string place = "{" + std::string(name) + "}";
    for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
      if (value.empty() || !is_literal_in_shells(value)) return std::nullopt;
      text.replace(at, place.size(), value);
      at += value.size();
    }
  }
  if (has_place(text)) return std::nullopt;
  return text;
}

}  // namespace

void Findings::add(std::string_view id, Seen seen, Values values) {
  const Kind& kind = kind_of(id);
  all_.push_back({.id = kind.id,
                  .severity = seen.severity.value_or(kind.severity),
                  .subject = std::move(seen.subject),
                  .fact = std::move(seen.fact),
                  .why = std::string(kind.why),
                  .fix = seen.fix.empty() ? std::string(kind.fix) : std::move(seen.fix),
                  .command = filled(kind.command, values).value_or(""),
                  .source = std::move(seen.source)});
}

void Findings::add_unknown(std::string_view id, Seen seen) {
  all_.push_back({.id = kind_of(id).id,
                  .severity = Severity::kUnknown,
                  .subject = std::move(seen.subject),
                  .fact = std::move(seen.fact),
                  .source = std::move(seen.source)});
}

std::vector<Finding> Findings::take() {
  std::ranges::stable_sort(all_, {}, [](const Finding& finding) {
    return std::pair(-static_cast<int>(finding.severity), place_of(finding.id));
  });
  return std::move(all_);
}

}  // namespace beeline::checks
