// SPDX-License-Identifier: Apache-2.0
//
// The output of `beeline hang`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tools/cli/text_style.h"
#include "tools/hang/causes.h"

namespace beeline::hang {

std::string text_of(const Analysis& analysis, std::span<const pages::Process> processes,
                    std::int64_t now_ns, const tools::TextStyle& style);
std::string json_of(const Analysis& analysis, std::span<const pages::Process> processes,
                    std::int64_t now_ns);

}  // namespace beeline::hang
