// SPDX-License-Identifier: Apache-2.0
//
// The contents of messages. Every byte is a function of the sender, of the message's number and of
// the byte's offset, so that a stale, shifted or foreign byte does not match.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beeline::perf {

using ContentId = std::uint64_t;

ContentId mix(std::uint64_t value) noexcept;

template <class... Parts>
ContentId content_id(Parts... parts) noexcept {
  ContentId id = 0;
  ((id = mix(id ^ static_cast<std::uint64_t>(parts))), ...);
  return id;
}

void fill(std::uint8_t* data, size_t size, ContentId id) noexcept;

struct Mismatch {
  size_t count = 0;  // bytes that differ
  size_t first = 0;  // where the first of them is
  std::uint8_t found = 0;
  std::uint8_t wanted = 0;
};
Mismatch compare(const std::uint8_t* data, size_t size, ContentId id) noexcept;

}  // namespace beeline::perf
