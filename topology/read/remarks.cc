// SPDX-License-Identifier: Apache-2.0
#include "topology/read/remarks.h"

#include <algorithm>

namespace beeline::topology {
namespace {

constexpr std::size_t kMostRemarks = 20;

}  // namespace

void Remarks::add(std::string text) {
  if (std::ranges::find(kept_, text) != kept_.end()) return;
  if (kept_.size() < kMostRemarks) {
    kept_.push_back(std::move(text));
  } else {
    ++dropped_;
  }
}

std::vector<std::string> Remarks::take() {
  if (dropped_ > 0) kept_.push_back("and " + std::to_string(dropped_) + " more");
  return std::move(kept_);
}

}  // namespace beeline::topology
