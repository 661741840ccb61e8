// SPDX-License-Identifier: Apache-2.0
// `softnic ls`: what fabrics there are, how their ports are, and who is using them.
#pragma once

#include <string>

namespace softnic::cli {

int ls(const std::string& name);  // empty: all of this user's

}  // namespace softnic::cli
