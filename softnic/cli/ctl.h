// SPDX-License-Identifier: Apache-2.0
// `softnic ctl`: commands to a port of a running fabric.
#pragma once

#include <string>
#include <vector>

namespace softnic::cli {

// `commands` are carried out in order, or none of them if one cannot be read.
int ctl(const std::string& name, const std::string& port, const std::vector<std::string>& commands);

}  // namespace softnic::cli
