// SPDX-License-Identifier: Apache-2.0
// `softnic ls`: shows fabrics, the state of their ports, and their processes.
#pragma once

#include <string>

namespace softnic::cli {

int ls(const std::string& name);  // empty: all fabrics of this user

}  // namespace softnic::cli
