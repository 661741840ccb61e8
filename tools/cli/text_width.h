// SPDX-License-Identifier: Apache-2.0
//
// Fits text to the width of the terminal.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/terminal_text.h"

namespace beeline::tools {

// The columns of the terminal that stdout goes to; 100 if it goes elsewhere.
std::size_t output_width() noexcept;

// The columns of the terminal that stdout goes to; without limit if it goes elsewhere. For lines
// that programs read.
std::size_t terminal_width() noexcept;

// Breaks a text into lines at blanks. The first begins at column `indent`, and the others are
// indented to it. A word that is longer than a line is not broken.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

using beeline::fitted;

}  // namespace beeline::tools
