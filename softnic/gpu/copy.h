// SPDX-License-Identifier: Apache-2.0
// Copies between host memory and device memory. A bad address is an error and not a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "softnic/gpu/pages.h"

namespace softnic::gpu {

inline std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// These return false if host memory cannot be read or written. Some bytes may have been copied.
bool copy_in(const std::vector<Piece>& to, const void* from);
bool copy_out(void* to, const std::vector<Piece>& from);
bool copy_on_host(void* to, const void* from, std::size_t length);
// Copies between lists of pieces with equal total lengths.
void copy_across(const std::vector<Piece>& to, const std::vector<Piece>& from);

}  // namespace softnic::gpu
