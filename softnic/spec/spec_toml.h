// SPDX-License-Identifier: Apache-2.0
// Reads a fabric file. The error names file, line and reason.
#pragma once

#include <string>

#include "common/base/result.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

beeline::Result<FabricSpec, std::string> read_fabric_file(const std::string& path);
beeline::Result<FabricSpec, std::string> parse_fabric(const std::string& text,
                                                      const std::string& file_name);

}  // namespace softnic
