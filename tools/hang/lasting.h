// SPDX-License-Identifier: Apache-2.0
//
// The causes that several looks had in common.
#pragma once

#include <set>
#include <span>
#include <string>

#include "tools/hang/report.h"

namespace beeline::hang {

class LastingCauses {
 public:
  void add(std::span<const JobReport> reports);
  bool empty() const noexcept { return keys_.empty(); }

 private:
  std::set<std::string> keys_;  // of the job and the process, or the reason
  bool is_first_ = true;
};

}  // namespace beeline::hang
