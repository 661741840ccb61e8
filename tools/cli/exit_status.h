// SPDX-License-Identifier: Apache-2.0
//
// The exit statuses of the `beeline` command, and the message that goes with a failure.
#pragma once

#include <exception>
#include <string>

#include "common/base/problem.h"

namespace beeline::tools {

inline constexpr int kFailed = 1;  // wrong data, or something broke
inline constexpr int kUsage = 2;   // a mistake in the command line, or in a file that it names

// The message for the user about an exception that a library threw.
std::string describe(const std::exception& error);

// Prints the problem on stderr, without control characters other than line breaks, and broken at
// the width of a terminal. Returns `status`, so that a caller can write `return print_error(...)`.
int print_error(const Problem& problem, int status = kFailed);

}  // namespace beeline::tools
