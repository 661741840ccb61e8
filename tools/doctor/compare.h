// SPDX-License-Identifier: Apache-2.0
//
// Finds the differences between several hosts.
#pragma once

#include <string>
#include <vector>

#include "common/base/finding.h"
#include "tools/doctor/card.h"

namespace beeline::doctor {

struct Examined {
  std::string name;
  Card card;
  std::vector<Finding> findings;
};

// The first line is the verdict; then a row for each fact that differs, with the most frequent
// value first; then the failures and warnings that not all hosts have.
std::string compare_text(const std::vector<Examined>& hosts, std::size_t width);
std::string compare_json(const std::vector<Examined>& hosts);
// Only the facts that differ, as a table. Empty if none does.
std::string different_facts(const std::vector<Examined>& hosts, std::size_t width);

// Whether a fact differs, or a failure or warning is not everywhere.
bool do_differ(const std::vector<Examined>& hosts);

}  // namespace beeline::doctor
