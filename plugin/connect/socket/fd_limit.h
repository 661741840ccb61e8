// SPDX-License-Identifier: Apache-2.0
//
// Running out of file descriptors. A pair of processes needs one for all its connections, but the
// program whose guest we are may have used up its own.
#pragma once

#include <string>

#include "common/base/result.h"

namespace beeline {

// Behind "Too many open files": "; this process may have 1024 open (ulimit -n, up to 4096 ...)".
// Empty when descriptors are not what is missing.
std::string fd_advice(const Error& error);

}  // namespace beeline
