// SPDX-License-Identifier: Apache-2.0
//
// Collects the remarks of a reader: each once, and no more than a person would read.
#pragma once

#include <string>
#include <vector>

namespace beeline::topology {

class Remarks {
 public:
  void add(std::string text);
  // If there were too many, the last remark says how many were dropped.
  std::vector<std::string> take();

 private:
  std::vector<std::string> kept_;
  std::size_t dropped_ = 0;
};

}  // namespace beeline::topology
