// SPDX-License-Identifier: Apache-2.0
//
// Writes docs/parameters.md to the given file, or to standard output. It is used by the build and
// is not installed.
#include <cstdio>

#include "plugin/config/config.h"

int main(int argc, char** argv) {
  std::FILE* file = argc > 1 ? std::fopen(argv[1], "w") : stdout;
  if (file == nullptr) return 1;
  const bool written = std::fputs(beeline::params_markdown().c_str(), file) >= 0;
  return std::fclose(file) == 0 && written ? 0 : 1;
}
