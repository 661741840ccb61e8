// SPDX-License-Identifier: Apache-2.0
//
// The files that a record contains.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "plugin/checks/tree.h"
#include "plugin/config/environ.h"

namespace beeline::doctor {

// Calls `take` for each path that may exist on a host. A path may be that of a symbolic link.
void each_recorded_path(const checks::Tree& tree,
                        const std::function<void(const std::string& path)>& take);

// Whether a variable is one that the checks or a person who reads the record may need.
bool is_recorded(std::string_view variable) noexcept;

}  // namespace beeline::doctor
