// SPDX-License-Identifier: Apache-2.0
//
// The context that init returns to a communicator of NCCL. It contains an owner number and a
// traffic class and points to nothing: NCCL may pass a context that it never got, or one that has
// ended, without harm.
#pragma once

#include "plugin/runtime/net.h"

namespace beeline::abi {

// Checks a value from NCCL: -1 if it requests none, or, with one warning, if it is out of range.
int traffic_class_of(int wanted) noexcept;

// Never null. Each context of a process has its own owner number.
void* new_context(int traffic_class) noexcept;

// A null context has no owner and requests no traffic class.
CommSettings settings_of(const void* context) noexcept;

}  // namespace beeline::abi
