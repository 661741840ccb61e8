// SPDX-License-Identifier: Apache-2.0
//
// See cases.h.
#include "tests/gpu/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "tests/gpu/nccl_api.h"

namespace beeline::gpu {
namespace {

constexpr std::size_t kMebi = std::size_t{1} << 20;

// In the order of size. 31 and 1023 floats end within a line of 128 bytes; the bytes end anywhere.
constexpr std::array kAllCases{
    Case{DataType::kFloat32, 1},
    Case{DataType::kUint8, 3},
    Case{DataType::kFloat32, 31},
    Case{DataType::kFloat32, 1023},
    Case{DataType::kUint8, 12345},
    Case{DataType::kInt32, 4097},
    Case{DataType::kFloat32, 65537},
    Case{DataType::kFloat32, kMebi / 4},
    Case{DataType::kInt32, 786433},
    Case{DataType::kFloat32, kMebi + 1},
    Case{DataType::kFloat32, 4 * kMebi - 1},
    Case{DataType::kFloat32, 16 * kMebi},
};

std::size_t most_bytes_of(const std::string& proto) {
  if (proto == "LL") return 4 * kMebi;
  if (proto == "LL128") return 16 * kMebi;
  return SIZE_MAX;
}

// A good mixer of 64 bits: neighbours have nothing in common.
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 29)) * 0xD6E8FEB86659FD93U;
  return value ^ (value >> 32);
}

// How large an element may be. A float stays exact up to 2^24, so up to 4096 ranks add up exactly;
// a byte wraps around in NCCL as it does in check().
constexpr std::uint64_t mask_of(std::size_t element_bytes) {
  return element_bytes == 1 ? 63 : 4095;
}

template <class T>
std::uint64_t element(std::size_t index, int rank, int round) noexcept {
  const auto who = static_cast<std::uint64_t>(rank) << 48 | static_cast<std::uint64_t>(round) << 40;
  return mix(index + 1 + who) & mask_of(sizeof(T));
}

template <class T>
void fill_as(std::size_t count, int rank, int round, unsigned char* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(element<T>(i, rank, round));
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
Verdict check_as(std::size_t count, int ranks, int round, const unsigned char* got) {
  Verdict verdict;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += element<T>(i, rank, round);
    const T wanted = static_cast<T>(sum);
    T value;
    std::memcpy(&value, got + i * sizeof(T), sizeof(T));
    if (value == wanted) continue;
    if (verdict.wrong++ == 0) {
      verdict.first = fmt::format("element {} of {} is {}, not {}", i, count, value, wanted);
    }
  }
  return verdict;
}

void check_guard(const unsigned char* guard, Verdict& verdict) {
  const auto* const damage = std::find_if(guard, guard + kGuardBytes,
                                          [](unsigned char byte) { return byte != kGuardByte; });
  if (damage == guard + kGuardBytes) return;
  if (verdict.wrong++ == 0) {
    verdict.first = fmt::format("byte {} past the end was written", damage - guard);
  }
}

}  // namespace

const char* to_string(DataType type) noexcept {
  switch (type) {
    case DataType::kFloat32: return "float";
    case DataType::kInt32: return "int32";
    case DataType::kUint8: return "uint8";
  }
  return "?";
}

int nccl_type(DataType type) noexcept {
  switch (type) {
    case DataType::kFloat32: return kNcclFloat32;
    case DataType::kInt32: return kNcclInt32;
    case DataType::kUint8: return kNcclUint8;
  }
  return -1;
}

std::size_t Case::bytes() const noexcept { return type == DataType::kUint8 ? count : 4 * count; }

std::string describe(const Case& one) {
  return fmt::format("{} {}", one.count, to_string(one.type));
}

std::vector<Case> cases_for(const std::string& proto, std::size_t most_bytes) {
  const std::size_t most = std::min(most_bytes, most_bytes_of(proto));
  std::vector<Case> chosen;
  std::copy_if(kAllCases.begin(), kAllCases.end(), std::back_inserter(chosen),
               [&](const Case& one) { return one.bytes() <= most; });
  return chosen;
}

void fill(const Case& one, int rank, int round, unsigned char* to) {
  switch (one.type) {
    case DataType::kFloat32: fill_as<float>(one.count, rank, round, to); break;
    case DataType::kInt32: fill_as<std::int32_t>(one.count, rank, round, to); break;
    case DataType::kUint8: fill_as<std::uint8_t>(one.count, rank, round, to); break;
  }
  std::memset(to + one.bytes(), kGuardByte, kGuardBytes);
}

Verdict check(const Case& one, int ranks, int round, const unsigned char* got) {
  Verdict verdict;
  switch (one.type) {
    case DataType::kFloat32: verdict = check_as<float>(one.count, ranks, round, got); break;
    case DataType::kInt32: verdict = check_as<std::int32_t>(one.count, ranks, round, got); break;
    case DataType::kUint8: verdict = check_as<std::uint8_t>(one.count, ranks, round, got); break;
  }
  check_guard(got + one.bytes(), verdict);
  return verdict;
}

}  // namespace beeline::gpu
