// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/problem.h"

namespace softnic {

// Reads a whole file. The error is the text of an errno. Reading a directory is an error.
beeline::Outcome<std::string> read_text(const std::string& path);

}  // namespace softnic
