// SPDX-License-Identifier: Apache-2.0
//
// The context that init gives a communicator of NCCL. It is a name with a wish in it and points to
// nothing: NCCL may end a context that it never got, or one that has ended, and no harm is done.
#pragma once

#include <cstdint>

#include "plugin/runtime/net.h"

namespace beeline::abi {

// Checks what came from NCCL: -1 for no wish, and with one warning for what is no traffic class.
int traffic_class_of(int wanted) noexcept;

// Never null. No two contexts of a process have one owner.
void* new_context(int traffic_class) noexcept;

// Of a null context: nobody, without a wish.
CommSettings settings_of(const void* context) noexcept;

}  // namespace beeline::abi
