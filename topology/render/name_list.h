// SPDX-License-Identifier: Apache-2.0
//
// Lists of names for people.
#pragma once

#include <string>
#include <vector>

namespace beeline::topology {

// "GPU0 to GPU7, mlx5_0, mlx5_1": three or more that count up by one are folded.
std::string folded(const std::vector<std::string>& names);

// "1 GPU", "2 GPUs".
std::string count_of(std::size_t count, const char* thing);

}  // namespace beeline::topology
