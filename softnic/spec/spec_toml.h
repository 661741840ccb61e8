// SPDX-License-Identifier: Apache-2.0
// Reads a fabric file. An error names the file, the line and the reason.
#pragma once

#include <string>

#include "common/base/problem.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

beeline::Outcome<FabricSpec> read_fabric_file(const std::string& path);
beeline::Outcome<FabricSpec> parse_fabric(const std::string& text, const std::string& file_name);

}  // namespace softnic
