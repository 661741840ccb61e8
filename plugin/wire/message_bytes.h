// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads numbers and texts as bytes, little-endian on every machine.
//
// A Reader trusts nothing. After its first failure everything it returns is zero or empty, so that
// a decoder reads all fields and checks once, at the end, whether all of them were valid.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/result.h"

namespace beeline::wire {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

class Writer {
 public:
  template <std::unsigned_integral T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
    }
  }
  template <std::signed_integral T>
  void number(T value) {
    number(static_cast<std::make_unsigned_t<T>>(value));
  }
  template <class E>
  requires std::is_enum_v<E>
  void choice(E value) { number(static_cast<std::underlying_type_t<E>>(value)); }
  void flag(bool value) { number(static_cast<std::uint8_t>(value ? 1 : 0)); }
  template <std::size_t N>
  void array(const std::array<std::uint8_t, N>& value) {
    for (const std::uint8_t byte : value) number(byte);
  }
  void count(std::size_t value) { number(static_cast<std::uint16_t>(value)); }
  // Cut if it is longer than `max`, because such texts are only for people.
  void text(std::string_view value, std::size_t max) {
    const std::string_view cut = value.substr(0, max);
    count(cut.size());
    for (const char c : cut) bytes_.push_back(static_cast<std::byte>(c));
  }
  // A field of fixed size: cut, or padded with zeroes.
  void padded(std::string_view value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      bytes_.push_back(i < value.size() ? static_cast<std::byte>(value[i]) : std::byte{0});
    }
  }

  const Bytes& bytes() const noexcept { return bytes_; }
  Bytes take() noexcept { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

class Reader {
 public:
  explicit Reader(ByteView bytes) noexcept : left_(bytes) {}

  template <std::unsigned_integral T>
  T number() noexcept {
    if (!has(sizeof(T))) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= std::to_integer<std::uint64_t>(left_[i]) << (8 * i);
    }
    left_ = left_.subspan(sizeof(T));
    return static_cast<T>(value);
  }
  template <std::signed_integral T>
  T number() noexcept {
    return static_cast<T>(number<std::make_unsigned_t<T>>());
  }
  // Fails outside of [least, most].
  template <std::integral T>
  T within(T least, T most) noexcept {
    const T value = number<T>();
    require(value >= least && value <= most);
    return is_good_ ? value : least;
  }
  // An enumerator; their values are 0 to `last`.
  template <class E>
  requires std::is_enum_v<E> E choice(E last)
  noexcept {
    using Number = std::underlying_type_t<E>;
    return static_cast<E>(within<Number>(0, static_cast<Number>(last)));
  }
  bool flag() noexcept { return within<std::uint8_t>(0, 1) == 1; }
  template <std::size_t N>
  std::array<std::uint8_t, N> array() noexcept {
    std::array<std::uint8_t, N> value{};
    for (std::uint8_t& byte : value) byte = number<std::uint8_t>();
    return value;
  }
  std::size_t count(std::size_t most) noexcept {
    return within<std::uint16_t>(0, static_cast<std::uint16_t>(most));
  }
  // Unprintable characters become question marks, because the text goes to the log.
  std::string text(std::size_t most) {
    const std::size_t size = count(most);
    if (!has(size)) return {};
    return printable(size);
  }
  std::string padded(std::size_t size) {
    if (!has(size)) return {};
    std::size_t used = 0;
    while (used < size && left_[used] != std::byte{0}) ++used;
    const ByteView rest = left_.subspan(size);
    std::string value = printable(used);
    left_ = rest;
    return value;
  }

  void require(bool condition) noexcept { is_good_ = is_good_ && condition; }
  bool is_good() const noexcept { return is_good_; }
  // All fields were valid, and no bytes are left over.
  bool is_finished() const noexcept { return is_good_ && left_.empty(); }

 private:
  bool has(std::size_t size) noexcept {
    require(left_.size() >= size);
    return is_good_;
  }
  std::string printable(std::size_t size) {
    std::string value(size, '?');
    for (std::size_t i = 0; i < size; ++i) {
      const auto c = std::to_integer<unsigned char>(left_[i]);
      if (c >= 0x20 && c < 0x7f) value[i] = static_cast<char>(c);
    }
    left_ = left_.subspan(size);
    return value;
  }

  ByteView left_;
  bool is_good_ = true;
};

}  // namespace beeline::wire
