// SPDX-License-Identifier: Apache-2.0
//
// The width of a terminal, and text that fits into it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace beeline {

// The columns of the terminal behind this descriptor; 0 if it is something else.
std::size_t terminal_columns(int fd) noexcept;

// The columns of a help text on stdout: at most 100, since longer lines are hard to read, and 100
// where stdout is no terminal.
std::size_t help_columns() noexcept;

// Breaks a text into lines at blanks. The first begins at column `first`, and the others are
// indented by `indent`. A word that is longer than a line is not broken.
std::string broken_at_blanks(const std::string& text, std::size_t first, std::size_t indent,
                             std::size_t width);

// Breaks those lines of a text that are too long. What follows of a line is indented by two more.
std::string fitted(std::string_view text, std::size_t width);

// The same for the terminal behind this descriptor. Text for something else stays as it is.
std::string fitted_to_terminal(std::string_view text, int fd);

}  // namespace beeline
