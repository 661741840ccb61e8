// SPDX-License-Identifier: Apache-2.0
//
// The terminal as `beeline top` uses it: keys come at once, and the screen is restored at the end.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>

namespace beeline::top {

struct Size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

class Terminal {
 public:
  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  // Whether there is one at both ends.
  static bool is_there() noexcept;
  static Size size() noexcept;
  // The key that was pressed; none within this time, or if the size has changed. 'q' also after
  // SIGINT or SIGTERM, or when the terminal is gone.
  static std::optional<char> key_within(std::int64_t ns);

 private:
  termios before_ = {};
};

}  // namespace beeline::top
