// SPDX-License-Identifier: Apache-2.0
//
// Writes objects as bytes and reads them again; numbers are little-endian on every machine.
//
// A message, and each object in it, describes its bytes once:
//   static void fields(auto& io, auto& object)
// names the fields in the order of their bytes, with their limits. A Writer as `io` writes the
// fields, and a Reader sets them. So a field cannot be written and not read. (A field that has been
// forgotten in both fails tests/plugin/unit/wire_message_test.cc.)
//
// Writer and Reader have the same functions:
//   io(a, b, ...)              numbers, flags, arrays, optional objects, objects with fields()
//   io.within(a, least, most)  a number
//   io.choice(a, last)         an enumerator; their values are 0 to `last`
//   io.text(a, most)           a text for people, of at most `most` bytes
//   io.padded(a, size)         a text in a field of fixed size
//   io.list(a, most)           a vector of at most `most` elements
//   io.count(a, most)          only the size of a vector: fields() goes on with its elements
//   io.first(a, n)             the number `n`, and so many elements of an array
//   io.halves(a, b)            two numbers of 4 bits
//   io.constant(a)             this value and no other
//   io.require(condition)      a condition on the fields before
//
// A Reader trusts nothing: it checks every limit and condition. From its first failure on, numbers
// are zero or the least that they may be, and texts and lists are empty. So fields() needs no
// checks of its own, and the caller asks once, at the end, whether all fields were valid. A Writer
// cuts texts that are too long, and checks nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/check/assert.h"

namespace beeline::wire {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

class Writer {
 public:
  void operator()(const auto&... values) { (one(values), ...); }
  template <std::integral T>
  void within(T value, std::type_identity_t<T> /*least*/, std::type_identity_t<T> /*most*/) {
    one(value);
  }
  template <class E>
  void choice(E value, E /*last*/) {
    one(static_cast<std::underlying_type_t<E>>(value));
  }
  void text(std::string_view value, std::size_t most) {
    const std::string_view cut = value.substr(0, most);
    size(cut.size());
    padded(cut, cut.size());
  }
  // Cut, or padded with zeroes.
  void padded(std::string_view value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      bytes_.push_back(i < value.size() ? static_cast<std::byte>(value[i]) : std::byte{0});
    }
  }
  template <class T>
  void list(const std::vector<T>& values, std::size_t most) {
    count(values, most);
    for (const T& value : values) one(value);
  }
  template <class T>
  void count(const std::vector<T>& values, std::size_t /*most*/) {
    size(values.size());
  }
  template <class T, std::size_t N>
  void first(const std::array<T, N>& values, std::uint8_t used) {
    BL_ASSERT(used <= N, "so many elements exist");
    size(used);
    for (const T& value : std::span(values).first(used)) one(value);
  }
  void halves(std::uint8_t low, std::uint8_t high) {
    one(static_cast<std::uint8_t>(low | high << 4));
  }
  void constant(std::integral auto value) { one(value); }
  void require(bool /*condition*/) {}

  const Bytes& bytes() const noexcept { return bytes_; }
  Bytes take() noexcept { return std::move(bytes_); }

 private:
  template <std::integral T>
  void one(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
    }
  }
  template <class T, std::size_t N>
  void one(const std::array<T, N>& values) {
    for (const T& value : values) one(value);
  }
  template <class T>
  void one(const std::optional<T>& value) {
    one(value.has_value());
    if (value) one(*value);
  }
  template <class A, class B>
  void one(const std::variant<A, B>& value) {
    one(value.index() == 1);
    std::visit([this](const auto& object) { this->one(object); }, value);
  }
  template <class T>
  requires std::is_class_v<T>
  void one(const T& object) { T::fields(*this, object); }
  void size(std::size_t value) {
    BL_ASSERT(value <= UINT16_MAX, "a size fits into two bytes");
    one(static_cast<std::uint16_t>(value));
  }

  Bytes bytes_;
};

class Reader {
 public:
  explicit Reader(ByteView bytes) noexcept : left_(bytes) {}

  void operator()(auto&... values) { (one(values), ...); }
  template <std::integral T>
  void within(T& value, std::type_identity_t<T> least, std::type_identity_t<T> most) {
    one(value);
    require(value >= least && value <= most);
    if (!is_good_) value = least;
  }
  template <class E>
  void choice(E& value, E last) {
    std::underlying_type_t<E> number = 0;
    within(number, 0, static_cast<std::underlying_type_t<E>>(last));
    value = static_cast<E>(number);
  }
  void text(std::string& value, std::size_t most) { value = printable(next(size(most))); }
  void padded(std::string& value, std::size_t size) {
    const ByteView bytes = next(size);
    const auto end = std::ranges::find(bytes, std::byte{0});
    value = printable(ByteView(bytes.begin(), end));
  }
  template <class T>
  void list(std::vector<T>& values, std::size_t most) {
    count(values, most);
    for (T& value : values) one(value);
  }
  template <class T>
  void count(std::vector<T>& values, std::size_t most) {
    values.resize(size(most));
  }
  template <class T, std::size_t N>
  void first(std::array<T, N>& values, std::uint8_t& used) {
    static_assert(N <= UINT8_MAX);
    used = static_cast<std::uint8_t>(size(N));
    for (T& value : std::span(values).first(used)) one(value);
  }
  void halves(std::uint8_t& low, std::uint8_t& high) {
    std::uint8_t both = 0;
    one(both);
    low = both & 0xf;
    high = static_cast<std::uint8_t>(both >> 4);
  }
  template <std::integral T>
  void constant(T expected) {
    T value = 0;
    one(value);
    require(value == expected);
  }
  void require(bool condition) noexcept { is_good_ = is_good_ && condition; }

  bool is_good() const noexcept { return is_good_; }
  // All fields were valid, and no bytes are left over.
  bool is_finished() const noexcept { return is_good_ && left_.empty(); }

 private:
  template <std::integral T>
  void one(T& value) {
    std::uint64_t number = 0;
    const ByteView bytes = next(sizeof(T));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      number |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    }
    value = static_cast<T>(number);
  }
  void one(bool& value) {
    std::uint8_t number = 0;
    within(number, 0, 1);
    value = number == 1;
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& values) {
    for (T& value : values) one(value);
  }
  // Inlined, it would make GCC 12 warn falsely of members that are not initialized.
  template <class T>
  [[gnu::noinline]] void one(std::optional<T>& value) {
    bool is_there = false;
    one(is_there);
    value.reset();
    if (is_there) one(value.emplace());
  }
  template <class A, class B>
  void one(std::variant<A, B>& value) {
    bool is_second = false;
    one(is_second);
    if (is_second) {
      value.template emplace<1>();
    } else {
      value.template emplace<0>();
    }
    std::visit([this](auto& object) { this->one(object); }, value);
  }
  template <class T>
  requires std::is_class_v<T>
  void one(T& object) { T::fields(*this, object); }
  std::size_t size(std::size_t most) {
    std::uint16_t value = 0;
    within(value, 0, static_cast<std::uint16_t>(most));
    return value;
  }
  // Unprintable characters become question marks, because the text goes to the log.
  static std::string printable(ByteView bytes) {
    std::string value(bytes.size(), '?');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto c = std::to_integer<unsigned char>(bytes[i]);
      if (c >= 0x20 && c < 0x7f) value[i] = static_cast<char>(c);
    }
    return value;
  }
  // Empty after a failure.
  ByteView next(std::size_t size) {
    require(left_.size() >= size);
    if (!is_good_) return {};
    const ByteView bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }

  ByteView left_;
  bool is_good_ = true;
};

}  // namespace beeline::wire
