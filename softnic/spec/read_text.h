// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/problem.h"

namespace softnic {

// Reads a whole file. The error says why that failed; a folder is an error, not an empty file.
beeline::Outcome<std::string> read_text(const std::string& path);

}  // namespace softnic
