// SPDX-License-Identifier: Apache-2.0
// `softnic ctl`: gives commands to a port or device of a running fabric, directly or from a script.
#pragma once

#include <string>
#include <vector>

namespace softnic::cli {

// Executes `commands` in order, or none of them if one is wrong.
int ctl(const std::string& name, const std::string& target,
        const std::vector<std::string>& commands);

// `file` may be "-" for standard input. Executes nothing if a line is wrong.
int ctl_script(const std::string& name, const std::string& file);

}  // namespace softnic::cli
