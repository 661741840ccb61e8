// SPDX-License-Identifier: Apache-2.0
//
// Counting what goes unsaid.
#include "topology/read/remarks.h"

#include <algorithm>

namespace beeline::topology {
namespace {

constexpr std::size_t kMostRemarks = 20;

}  // namespace

void Remarks::add(std::string text) {
  if (std::ranges::find(said_, text) != said_.end()) return;
  if (said_.size() < kMostRemarks) {
    said_.push_back(std::move(text));
  } else {
    ++unsaid_;
  }
}

std::vector<std::string> Remarks::take() {
  if (unsaid_ > 0) said_.push_back("and " + std::to_string(unsaid_) + " more of the kind");
  return std::move(said_);
}

}  // namespace beeline::topology
