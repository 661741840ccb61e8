// SPDX-License-Identifier: Apache-2.0
//
// The text with which a rank introduces itself after it has proven the token.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>

namespace beeline::ranks {

struct Hello {
  std::size_t rank = 0;
  std::string about = {};  // of `beeline perf`: its json.h:terms_of; of the doctor: its host
};

inline std::string text_of(const Hello& hello) {
  return fmt::format("{} {}", hello.rank, hello.about);
}

inline std::optional<Hello> read_hello(const std::string& text) {
  Hello hello;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, hello.rank);
  if (error != std::errc() || stop == end || *stop != ' ') return std::nullopt;
  hello.about.assign(stop + 1, end);
  return hello;
}

}  // namespace beeline::ranks
