// SPDX-License-Identifier: Apache-2.0
//
// Escapes text for XML: for pictures (SVG) and for files that NCCL reads.
#pragma once

#include <string>
#include <string_view>

namespace beeline::topology {

inline std::string escape_xml(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

}  // namespace beeline::topology
