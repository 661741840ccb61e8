// SPDX-License-Identifier: Apache-2.0
#include "softnic/spec/read_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/fd.h"

namespace softnic {

beeline::Outcome<std::string> read_text(const std::string& path) {
  const beeline::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[1 << 14];
  for (;;) {
    const ssize_t got = file ? ::read(file.get(), part, sizeof part) : -1;
    if (got == 0) return text;
    if (got > 0) text.append(part, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return beeline::fail(std::string(std::strerror(errno)));
  }
}

}  // namespace softnic
