// SPDX-License-Identifier: Apache-2.0
// What the subcommands of `softnic` share: which fabric is meant, and how failure is told.
#pragma once

#include <string>
#include <vector>

namespace softnic::cli {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// Tells the user and returns `code`, for `return complain(...)`.
int report_error(const std::string& reason, int code = kFailed);

// --name if given, else SOFTNIC_FABRIC, else "default".
std::string fabric_name(const std::string& option);

// An environment variable that is unset and one that is empty mean the same here.
std::string env_or(const char* variable, const std::string& otherwise);

// Rows in columns as wide as their widest cell, two spaces apart.
std::string columns(const std::vector<std::vector<std::string>>& rows, const std::string& indent);

}  // namespace softnic::cli
