// SPDX-License-Identifier: Apache-2.0
// Checks names in fabric files and commands, expands ranges such as "h[0-31]", and suggests known
// names for mistyped ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/problem.h"

namespace softnic {

// Letters, digits, '-', '_' and '.', at most `max_len` of them, not "." or "..".
bool is_plain_name(const std::string& name, std::size_t max_len);

// "eth[0-3]" becomes eth0..eth3, "n[08-10]" n08, n09, n10; a name without brackets is itself.
// Fails on a malformed range and on more than `most` names.
beeline::Outcome<std::vector<std::string>> expand_range(const std::string& pattern,
                                                        std::size_t most);

// The known name that needs the fewest edits; empty if every known name differs too much.
std::string nearest_name(const std::string& name, std::span<const std::string> known);

// "a, b and c". After 24 names it ends with "and N more".
std::string list_text(std::span<const std::string> names);

}  // namespace softnic
