// SPDX-License-Identifier: Apache-2.0
//
// Makes names printable. They come from files and firmware, and may contain any bytes; terminals
// and XML parsers need valid UTF-8. Also counts and cuts text in characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace beeline::topology {

// '?' in the place of each control character, of each byte that is not part of a well-formed
// character, and of each character that XML forbids.
std::string printable(std::string_view text);

// These expect well-formed UTF-8.
std::size_t count_characters(std::string_view text) noexcept;
std::string_view first_characters(std::string_view text, std::size_t count) noexcept;

}  // namespace beeline::topology
