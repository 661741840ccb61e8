// SPDX-License-Identifier: Apache-2.0
//
// Text in a picture: escaped, and no longer than the space for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace beeline::topology {

// Escaped as the content of an element. The text may contain any bytes.
std::string escaped(std::string_view text);

// At most this many characters; the last two are dots if the text was cut. The result is printable.
std::string shortened(std::string_view text, std::size_t most);

// Broken at spaces into lines of at most so many characters; longer words are broken, too.
std::vector<std::string> wrapped(std::string_view text, std::size_t most);

}  // namespace beeline::topology
