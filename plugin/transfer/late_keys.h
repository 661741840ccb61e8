// SPDX-License-Identifier: Apache-2.0
//
// For a sender: the keys of receive buffers whose credit lines have older ones, because a rail of
// the receiver has got another device since it granted them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/check/assert.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/message_remake.h"

namespace beeline {

class LateKeys {
 public:
  void take(std::size_t rail, const wire::LineKeys& keys) noexcept {
    Rail& at = rails_[rail];
    at = {};
    at.is_set = true;
    at.next = keys.next;
    for (const wire::LineKeys::Key& one : keys.keys) {
      at.has.add(one.position);
      at.keys[one.position % wire::kMaxLines] = one.key;
    }
  }

  // Whether the key in the line is out of date.
  bool is_for(std::size_t rail, std::uint32_t position) const noexcept {
    const Rail& at = rails_[rail];
    return at.is_set && wire::is_in_ring_before(at.next, position);
  }
  // None: the rail cannot carry the line.
  std::optional<std::uint32_t> key(std::size_t rail, std::uint32_t position) const noexcept {
    BL_ASSERT(is_for(rail, position), "the key in the line is out of date");
    const Rail& at = rails_[rail];
    if (!at.has.has(position)) return std::nullopt;
    return at.keys[position % wire::kMaxLines];
  }
  // Lines that are so old are done: their positions must not be taken for those of later lines.
  void forget_before(std::uint32_t position) noexcept {
    for (Rail& at : rails_) {
      const std::uint32_t distance = position - at.next;
      if (distance >= wire::kMaxLines && distance < UINT32_MAX / 2) at.is_set = false;
    }
  }

 private:
  struct Rail {
    bool is_set = false;
    std::uint32_t next = 0;  // keys are of lines before this position
    wire::LineSet has;
    std::array<std::uint32_t, wire::kMaxLines> keys{};
  };
  std::array<Rail, wire::kMaxRails> rails_;
};

}  // namespace beeline
