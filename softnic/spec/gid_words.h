// SPDX-License-Identifier: Apache-2.0
// Parses GIDs ("fe80::1", "::ffff:10.0.0.1") and their types ("roce_v2", "ib").
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/base/problem.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

// Accepts the all-zero GID, which stands for an empty table entry.
beeline::Outcome<std::array<std::uint8_t, 16>> parse_gid(const std::string& text);

// Accepts "ib", "roce_v1" and "roce_v2", also without the underscore.
beeline::Outcome<GidKind> parse_gid_kind(const std::string& text);

const char* gid_kind_name(GidKind kind);

}  // namespace softnic
