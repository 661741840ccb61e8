// SPDX-License-Identifier: Apache-2.0
// The names of the driver's errors.
#pragma once

namespace softnic::gpu {

// "CUDA_ERROR_INVALID_VALUE", and a few words on it. nullptr: no such error.
const char* error_name(int value) noexcept;
const char* error_text(int value) noexcept;

}  // namespace softnic::gpu
