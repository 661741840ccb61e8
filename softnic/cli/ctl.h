// SPDX-License-Identifier: Apache-2.0
// `softnic ctl`: commands to a port or device of a running fabric, now or by a script.
#pragma once

#include <string>
#include <vector>

namespace softnic::cli {

// `commands` are carried out in order, or none of them if one cannot be read.
int ctl(const std::string& name, const std::string& target,
        const std::vector<std::string>& commands);

// `file` may be "-" for standard input. Nothing is done if a line of it is wrong.
int ctl_script(const std::string& name, const std::string& file);

}  // namespace softnic::cli
