// SPDX-License-Identifier: Apache-2.0
//
// The text of `beeline top`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tools/top/rates.h"

namespace beeline::top {

struct Screen {
  std::size_t columns = 0;  // longer lines are cut; 0: none
  std::size_t rows = 0;     // the same for further lines
  bool has_color = false;
  bool shows_connections = false;
  std::string keys = {};  // of the terminal program, for the first line
};

std::string text_of(std::span<const ProcessRate> rates, std::int64_t now_ns, const Screen& screen);

}  // namespace beeline::top
