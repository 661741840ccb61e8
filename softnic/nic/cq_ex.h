// SPDX-License-Identifier: Apache-2.0
// The extended way to poll: one completion at a time, its fields read by functions.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace softnic {

// The fields that we can tell; asking for another is refused when the queue is made.
inline constexpr std::uint64_t kReadableFields = IBV_WC_STANDARD_FLAGS;

void install_poll_functions(ibv_cq_ex& cq);

}  // namespace softnic
