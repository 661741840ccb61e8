// SPDX-License-Identifier: Apache-2.0
// Names and descriptions of the driver's error codes.
#pragma once

namespace softnic::gpu {

// "CUDA_ERROR_INVALID_VALUE", and a short description. nullptr if there is no such error.
const char* error_name(int value) noexcept;
const char* error_text(int value) noexcept;

}  // namespace softnic::gpu
