// SPDX-License-Identifier: Apache-2.0
//
// Advice for when file descriptors run out. The plugin needs only one for each pair of processes,
// but the application may have used up all others.
#pragma once

#include <string>

#include "common/base/result.h"

namespace beeline {

// A clause to follow "Too many open files", which names the limit and how to raise it. Empty unless
// the error is about descriptors.
std::string fd_advice(const Error& error);

}  // namespace beeline
