// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/row.h"

#include <utility>

namespace beeline::perf {

void Row::set(std::string key, Number number) { entries_.push_back({std::move(key), number}); }

std::optional<double> Row::find(const std::string& key) const {
  for (const Entry& entry : entries_) {
    if (entry.key != key) continue;
    const auto* const count = std::get_if<std::uint64_t>(&entry.number);
    return count == nullptr ? std::get<double>(entry.number) : static_cast<double>(*count);
  }
  return std::nullopt;
}

}  // namespace beeline::perf
