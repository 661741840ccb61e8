// SPDX-License-Identifier: Apache-2.0
// GIDs as people write them: "fe80::1", "::ffff:10.0.0.1"; and their kinds: "roce_v2", "ib".
#pragma once

#include <array>
#include <string>

#include "common/base/problem.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

// All zero, which stands for an empty entry, is read too.
beeline::Outcome<std::array<std::uint8_t, 16>> parse_gid(const std::string& text);

// "ib", "roce_v1", "roce_v2"; without the underscore too.
beeline::Outcome<GidKind> parse_gid_kind(const std::string& text);

const char* gid_kind_name(GidKind kind);

}  // namespace softnic
