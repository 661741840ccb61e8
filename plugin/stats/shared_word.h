// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the numbers of the page, each by one atomic load or store. Release and acquire
// cost nothing on x86; they replace fences, which ThreadSanitizer does not support.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace beeline::shared {

template <class T>
T load(const T& word, std::memory_order order = std::memory_order_relaxed) noexcept {
  return std::atomic_ref<T>(const_cast<T&>(word)).load(order);  // it only reads
}
template <class T>
void store(T& word, std::type_identity_t<T> value,
           std::memory_order order = std::memory_order_relaxed) noexcept {
  std::atomic_ref<T>(word).store(value, order);
}

// Only for the one thread that writes this number, so it needs no locked instruction. On x86 it is
// one addition to memory, in assembly, which ThreadSanitizer cannot check.
inline void add(std::uint64_t& word, std::uint64_t amount) noexcept {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  asm("addq %1, %0" : "+m"(word) : "er"(amount) : "cc");
#else
  store(word, load(word) + amount);
#endif
}

// The text is truncated to fit, and always ends with a zero byte.
template <std::size_t N>
void store_text(char (&place)[N], std::string_view text) noexcept {
  for (std::size_t i = 0; i < N; ++i) {
    store(place[i], i < text.size() && i + 1 < N ? text[i] : '\0', std::memory_order_release);
  }
}

}  // namespace beeline::shared
