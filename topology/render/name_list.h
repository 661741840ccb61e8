// SPDX-License-Identifier: Apache-2.0
//
// Lists of names for people.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace beeline::topology {

// "GPU0 to GPU7, mlx5_0, mlx5_1": three or more that count up by one are folded.
std::string folded(const std::vector<std::string>& names);

// Texts about things. A text that is the same for several things is printed once.
class Sayings {
 public:
  void add(const std::string& saying, const std::string& name);
  bool empty() const noexcept { return groups_.empty(); }

  // A line for each saying, in the order in which they came: "GPU0 to GPU3: the nearest NIC".
  // `one` and `many` stand between the names and the colon.
  std::string text(const char* one = "", const char* many = "") const;

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> groups_;
  std::map<std::string, std::size_t> places_;  // of a saying's group
};

// "1 GPU", "2 GPUs".
std::string count_of(std::size_t count, const char* thing);

}  // namespace beeline::topology
