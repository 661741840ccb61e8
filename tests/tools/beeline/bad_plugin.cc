// SPDX-License-Identifier: Apache-2.0
//
// A plugin of others that cannot be loaded: BAD_PLUGIN says how its constructor ends.
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

__attribute__((constructor)) void construct() {
  const char* const variable = std::getenv("BAD_PLUGIN");
  const std::string_view end = variable == nullptr ? "" : variable;
  if (end == "abort") std::abort();
  if (end == "exit") std::_Exit(3);
  if (end == "hang") {
    for (;;) ::pause();
  }
}

}  // namespace
