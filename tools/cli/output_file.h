// SPDX-License-Identifier: Apache-2.0
//
// Writes the output of a command to the file that the user named.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/exit_status.h"

namespace beeline::tools {

inline constexpr std::string_view kStdout = "-";

// Writes all of the text or nothing: a regular file is replaced by a temporary file beside it, so
// that after a failure the old content is still there. Symbolic links are followed, and the mode of
// the file is kept. Other files (a pipe, /dev/null) are written directly. "-" is stdout.
Outcome<void> write_output(const std::string& path, std::string_view text);

// The same, and "wrote PATH" on stderr, unless that is stdout.
Outcome<void> write_output_and_say(const std::string& path, std::string_view text);

// Finds out whether write_output() could write now, for a command that works for long before it
// does.
Outcome<void> check_output(const std::string& path);

}  // namespace beeline::tools
