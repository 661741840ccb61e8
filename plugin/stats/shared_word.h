// SPDX-License-Identifier: Apache-2.0
//
// How the page's numbers are touched: each by one store or load that cannot tear. Release and
// acquire cost nothing on x86, and stand in for fences, which ThreadSanitizer does not know.
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

// By the one thread that writes it: no locked instruction, and where the machine has one that adds
// to memory, none but that. ThreadSanitizer cannot see into it.
inline void add(std::uint64_t& word, std::uint64_t amount) noexcept {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  asm("addq %1, %0" : "+m"(word) : "er"(amount) : "cc");
#else
  store(word, load(word) + amount);
#endif
}

// Cut to fit, and always ended by a zero.
template <std::size_t N>
void store_text(char (&place)[N], std::string_view text) noexcept {
  for (std::size_t i = 0; i < N; ++i) {
    store(place[i], i < text.size() && i + 1 < N ? text[i] : '\0', std::memory_order_release);
  }
}

}  // namespace beeline::shared
