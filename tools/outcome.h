// SPDX-License-Identifier: Apache-2.0
//
// How the command's code fails: with a sentence for the user, which names the thing, the cause and
// where there is one, the way out.
#pragma once

#include <exception>
#include <string>

#include "common/base/result.h"

namespace beeline::tools {

template <class T>
using Outcome = Result<T, std::string>;

inline constexpr int kFailed = 1;  // wrong data, or something broke
inline constexpr int kUsage = 2;   // the command line, or what it names, makes no sense

// The text for the user about an exception of a library.
std::string describe(const std::exception& error);

// Tells the user on stderr and returns `code`, for `return complain(...)`.
int complain(const std::string& reason, int code = kFailed);

}  // namespace beeline::tools
