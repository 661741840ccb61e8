// SPDX-License-Identifier: Apache-2.0
//
// docs/parameters.md, written from the table.
#pragma once

#include <string>

namespace beeline {

std::string params_markdown();

}  // namespace beeline
