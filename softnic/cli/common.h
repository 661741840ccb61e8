// SPDX-License-Identifier: Apache-2.0
// Helpers of the subcommands of `softnic`: the name of the fabric, error messages, tables.
#pragma once

#include <string>
#include <vector>

namespace softnic::cli {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// Prints the error, broken at the width of a terminal, and returns `code`, for `return
// report_error(...)`.
int report_error(const std::string& reason, int code = kFailed);

// --name if given, else SOFTNIC_FABRIC, else "default".
std::string fabric_name(const std::string& option);

// The value of an environment variable, or `otherwise` if it is unset or empty.
std::string env_or(const char* variable, const std::string& otherwise);

// Formats rows in columns as wide as their widest cell, with two spaces between them.
std::string columns(const std::vector<std::vector<std::string>>& rows, const std::string& indent);

}  // namespace softnic::cli
