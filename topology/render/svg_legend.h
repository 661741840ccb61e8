// SPDX-License-Identifier: Apache-2.0
//
// The legend of the picture: the marks that occur in it, each with a sample.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace beeline::topology {

inline constexpr const char* kSlowColor = "#c81e1e";
inline constexpr const char* kLinkColor = "#627d98";

enum class Mark : std::uint8_t {
  kUse,          // a line from a GPU to a NIC
  kSpare,        // a NIC's box
  kSlowLink,     // a link, its text, and the box below it
  kIdleLink,     //
  kUnknownLink,  // its current rate is known, but not its maximum
  kFar,          // the text of a GPU
};

struct Legend {
  std::string svg = {};
  double height = 0;
};

// Entries from left to right below `y`, in as many lines as the width requires.
Legend legend_of(const std::set<Mark>& marks, double y, double width);

}  // namespace beeline::topology
