// SPDX-License-Identifier: Apache-2.0
//
// Compares names such as device names so that numbers in them are in numeric order.
#pragma once

#include <string_view>

namespace beeline {

// mlx5_2 is before mlx5_10: a group of digits is compared as a number.
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace beeline
