// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace beeline::gpu {
namespace {

// Mixes 64 bits, so that neighboring numbers have unrelated results.
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 29)) * 0xD6E8FEB86659FD93U;
  return value ^ (value >> 32);
}

// The limit of an element. A float is exact up to 2^24, so sums of up to 4096 ranks are exact. A
// byte wraps around in NCCL as in check().
constexpr std::uint64_t mask_of(std::size_t element_bytes) {
  return element_bytes == 1 ? 63 : 4095;
}

// The elements of one operation: its input and its expected output.
template <class T>
class Elements {
 public:
  Elements(const Case& one, const Place& place)
      : one_(one),
        place_(place),
        salt_(static_cast<std::uint64_t>(place.round) << 40 | static_cast<std::uint64_t>(one.op)
                                                                  << 36) {}

  std::uint64_t input(std::size_t index, int rank) const noexcept {
    const std::uint64_t who = static_cast<std::uint64_t>(rank) << 48 | salt_;
    return mix(index + 1 + who) & mask_of(sizeof(T));
  }

  T output(std::size_t index) const noexcept {
    const std::size_t mine = static_cast<std::size_t>(place_.rank) * one_.count;
    switch (one_.op) {
      case Op::kAllReduce: return static_cast<T>(sum(index));
      case Op::kAllGather: return static_cast<T>(input(index % one_.count, block(index)));
      case Op::kReduceScatter: return static_cast<T>(sum(mine + index));
      case Op::kAllToAll: return static_cast<T>(input(mine + index % one_.count, block(index)));
      case Op::kSendRecv: return static_cast<T>(input(index, before()));
    }
    return T{};
  }

 private:
  int block(std::size_t index) const noexcept { return static_cast<int>(index / one_.count); }
  int before() const noexcept { return (place_.rank + place_.ranks - 1) % place_.ranks; }
  std::uint64_t sum(std::size_t index) const noexcept {
    std::uint64_t total = 0;
    for (int rank = 0; rank < place_.ranks; ++rank) total += input(index, rank);
    return total;
  }

  const Case& one_;
  const Place& place_;
  std::uint64_t salt_;
};

template <class T>
void fill_as(const Case& one, const Place& place, unsigned char* to) {
  const Elements<T> elements(one, place);
  const std::size_t count = one.input_bytes(place.ranks) / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(elements.input(i, place.rank));
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
Verdict check_as(const Case& one, const Place& place, const unsigned char* got) {
  const Elements<T> elements(one, place);
  const std::size_t count = one.output_bytes(place.ranks) / sizeof(T);
  Verdict verdict;
  for (std::size_t i = 0; i < count; ++i) {
    const T wanted = elements.output(i);
    T value;
    std::memcpy(&value, got + i * sizeof(T), sizeof(T));
    if (value == wanted) continue;
    if (verdict.wrong++ == 0) {
      verdict.first = fmt::format("element {} of {} is {}, not {}", i, count, value, wanted);
    }
  }
  return verdict;
}

void check_guard(const unsigned char* guard, const char* where, Verdict& verdict) {
  const auto* const damage = std::find_if(guard, guard + kGuardBytes,
                                          [](unsigned char byte) { return byte != kGuardByte; });
  if (damage == guard + kGuardBytes) return;
  if (verdict.wrong++ == 0) {
    verdict.first = fmt::format("byte {} {} was written", damage - guard, where);
  }
}

}  // namespace

Layout apart_input(const Case& one, const Place& place) {
  return {kGuardBytes, kGuardBytes, kGuardBytes + one.input_bytes(place.ranks)};
}

Layout apart_output(const Case& one, const Place& place) {
  return {kGuardBytes, kGuardBytes, kGuardBytes + one.output_bytes(place.ranks)};
}

// NCCL's rule for operations in place: the smaller buffer is the rank's own block of the larger.
Layout in_place(const Case& one, const Place& place) {
  const std::size_t input = one.input_bytes(place.ranks);
  const std::size_t output = one.output_bytes(place.ranks);
  const std::size_t mine = kGuardBytes + static_cast<std::size_t>(place.rank) * one.bytes();
  return {input < output ? mine : kGuardBytes, output < input ? mine : kGuardBytes,
          kGuardBytes + std::max(input, output)};
}

void fill(const Case& one, const Place& place, unsigned char* to) {
  switch (one.type) {
    case DataType::kFloat32: fill_as<float>(one, place, to); break;
    case DataType::kInt32: fill_as<std::int32_t>(one, place, to); break;
    case DataType::kUint8: fill_as<std::uint8_t>(one, place, to); break;
  }
}

Verdict check(const Case& one, const Place& place, const Layout& layout,
              const unsigned char* buffer) {
  const unsigned char* const got = buffer + layout.output;
  Verdict verdict;
  switch (one.type) {
    case DataType::kFloat32: verdict = check_as<float>(one, place, got); break;
    case DataType::kInt32: verdict = check_as<std::int32_t>(one, place, got); break;
    case DataType::kUint8: verdict = check_as<std::uint8_t>(one, place, got); break;
  }
  check_guard(buffer, "of the guard before the data", verdict);
  check_guard(buffer + layout.end, "past the end", verdict);
  return verdict;
}

}  // namespace beeline::gpu
