// SPDX-License-Identifier: Apache-2.0
//
// The order in which people expect names.
#pragma once

#include <string_view>

namespace beeline {

// mlx5_2 stands before mlx5_10: digits compare as a number.
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace beeline
