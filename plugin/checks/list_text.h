// SPDX-License-Identifier: Apache-2.0
//
// Builds texts such as "mlx5_0, mlx5_1".
#pragma once

#include <string>
#include <string_view>

namespace beeline::checks {

inline void append_item(std::string& list, std::string_view item,
                        std::string_view separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

}  // namespace beeline::checks
