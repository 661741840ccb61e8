// SPDX-License-Identifier: Apache-2.0
//
// The findings that a test has collected, and questions about them.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/finding.h"

namespace beeline::test {

class Found {
 public:
  Found() = default;
  Found(std::span<const Finding> findings) { add(findings); }

  void add(std::span<const Finding> findings) {
    findings_.insert(findings_.end(), findings.begin(), findings.end());
  }

  std::size_t size() const { return findings_.size(); }
  // How many have this part in their text.
  std::size_t count(std::string_view part) const {
    return count_if(
        [&](const Finding& finding) { return describe(finding).find(part) != std::string::npos; });
  }
  std::size_t count(Severity severity) const {
    return count_if([&](const Finding& finding) { return finding.severity == severity; });
  }
  bool has(std::string_view part) const { return count(part) != 0; }
  // Whether there is one of this id and severity about this subject.
  bool has(std::string_view id, Severity severity, std::string_view subject) const {
    return count_if([&](const Finding& finding) {
             return finding.id == id && finding.severity == severity && finding.subject == subject;
           }) != 0;
  }

  // One line each: INFO(all_text()) shows them beside a failed check.
  std::string all_text() const {
    std::string all;
    for (const Finding& finding : findings_) {
      all += std::string(finding.id) + ", " + to_string(finding.severity) + ": " +
             describe(finding) + "\n";
    }
    return all;
  }

 private:
  template <class Predicate>
  std::size_t count_if(const Predicate& predicate) const {
    return static_cast<std::size_t>(std::ranges::count_if(findings_, predicate));
  }

  std::vector<Finding> findings_;
};

}  // namespace beeline::test
