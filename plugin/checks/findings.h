// SPDX-License-Identifier: Apache-2.0
//
// Collects what the checks find. The reason and the fix come from the table of kinds, so a check
// says only what it has seen.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/finding.h"

namespace beeline::checks {

struct Seen {
  std::string subject = {};               // "mlx5_0 port 1"
  std::string fact = {};                  // a sentence that names the subject
  std::string source = {};                // the file that says so
  std::string fix = {};                   // in place of the table's
  std::optional<Severity> severity = {};  // likewise
};

// The values of the names in braces in the command of a kind.
using Values = std::initializer_list<std::pair<std::string_view, std::string>>;

class Findings {
 public:
  // `id` must be in the table. A command is left out if a value is missing, or has
  // characters that a shell would not take literally: values come from files of strangers.
  void add(std::string_view id, Seen seen, Values values = {});
  // The check could not be made, for the reason that the fact gives.
  void add_unknown(std::string_view id, Seen seen);

  const std::vector<Finding>& all() const noexcept { return all_; }
  // The worst first; within a severity in the order of the table.
  std::vector<Finding> take();

 private:
  std::vector<Finding> all_;
};

}  // namespace beeline::checks
