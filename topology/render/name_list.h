// SPDX-License-Identifier: Apache-2.0
//
// Lists of names and lines about several things, for output.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace beeline::topology {

// "GPU0 to GPU7, mlx5_0, mlx5_1": three or more that count up by one are folded.
std::string folded(const std::vector<std::string>& names);

// Lines about things. A line that is the same for several things is printed once, with all names.
class GroupedLines {
 public:
  void add(const std::string& line, const std::string& name);
  bool empty() const noexcept { return groups_.empty(); }

  // Each line once, with all of its names, in the order of the first add(): "GPU0 to GPU3: the
  // nearest NIC". `one` or `many` is inserted between the names and the colon.
  std::string text(const char* one = "", const char* many = "") const;

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> groups_;
  std::map<std::string, std::size_t> group_of_;  // by line: its index in groups_
};

// "1 GPU", "2 GPUs".
std::string count_of(std::size_t count, const char* thing);

}  // namespace beeline::topology
