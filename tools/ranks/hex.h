// SPDX-License-Identifier: Apache-2.0
//
// Bytes as text, for lines and for JSON.
#pragma once

#include <string>
#include <string_view>

namespace beeline::ranks {

std::string hex_of(std::string_view bytes);
// If the text is not hexadecimal as a whole, the bytes of its beginning that is.
std::string bytes_of(std::string_view hex);

}  // namespace beeline::ranks
