// SPDX-License-Identifier: Apache-2.0
//
// What a function of this program returns when it can fail: its value, or a sentence for the person
// who ran it.
#pragma once

#include <string>

#include "common/base/result.h"

namespace beeline::gpu {

template <class T>
using Outcome = Result<T, std::string>;

// Success of a step that has no value of its own.
struct Done {};

}  // namespace beeline::gpu
