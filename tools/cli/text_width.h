// SPDX-License-Identifier: Apache-2.0
//
// Fits text to the width of the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace beeline::tools {

// The columns of the terminal that stdout goes to; 100 if it goes elsewhere.
std::size_t output_width() noexcept;

// The columns of a help text: long lines are hard to read even where there is room for them.
std::size_t help_width() noexcept;

// The columns of the terminal that stdout goes to; without limit if it goes elsewhere. For lines
// that programs read.
std::size_t terminal_width() noexcept;

// Breaks a text into lines at blanks. The first begins at column `indent`, and the others are
// indented to it. A word that is longer than a line is not broken.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

// Breaks those lines of a text that are too long. What follows of a line is indented by two more.
std::string fitted(std::string_view text, std::size_t width);

}  // namespace beeline::tools
