// SPDX-License-Identifier: Apache-2.0
//
// What a reader has to say of a description: each thing once, and not more than anyone reads.
#pragma once

#include <string>
#include <vector>

namespace beeline::topology {

class Remarks {
 public:
  void add(std::string text);
  // The last one says how many were too many.
  std::vector<std::string> take();

 private:
  std::vector<std::string> said_;
  std::size_t unsaid_ = 0;
};

}  // namespace beeline::topology
