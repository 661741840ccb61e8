// SPDX-License-Identifier: Apache-2.0
//
// Generates docs/parameters.md from the table of parameters.
#pragma once

#include <string>

namespace beeline {

std::string params_markdown();

}  // namespace beeline
