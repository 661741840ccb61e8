// SPDX-License-Identifier: Apache-2.0
//
// What a command writes where its user said.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/exit_status.h"

namespace beeline::tools {

inline constexpr std::string_view kStdout = "-";

// All of the text or nothing: a regular file is written beside its place and then moved there, so
// that a failure leaves what was there before. Links are followed, a file's mode stays. What is no
// regular file (a pipe, /dev/null) is written straight. "-" is stdout.
Outcome<void> write_output(const std::string& path, std::string_view text);

}  // namespace beeline::tools
