// SPDX-License-Identifier: Apache-2.0
//
// Text in a picture: escaped, and no longer than the space for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace beeline::topology {

// As the content of an element: names come from files and firmware, and may be any bytes.
std::string escaped(std::string_view text);

// At most this many characters; the last two are dots if the text was cut. The result is printable.
std::string shortened(std::string_view text, std::size_t most);

// Cut at spaces into lines of so many characters; a word that is longer is cut within.
std::vector<std::string> wrapped(std::string_view text, std::size_t most);

}  // namespace beeline::topology
