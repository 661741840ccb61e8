// SPDX-License-Identifier: Apache-2.0
//
// The output of `beeline hang`.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tools/hang/causes.h"

namespace beeline::hang {

// `width`: columns of text.
std::string text_of(const Analysis& analysis, std::span<const pages::Process> processes,
                    std::size_t width);
std::string json_of(const Analysis& analysis, std::span<const pages::Process> processes);

}  // namespace beeline::hang
