// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plugin/base/result.h"

namespace softnic {

// All that a file holds. The error is what stood in the way: a folder is no empty file.
beeline::Result<std::string, std::string> read_text(const std::string& path);

}  // namespace softnic
