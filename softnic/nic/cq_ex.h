// SPDX-License-Identifier: Apache-2.0
// The extended polling interface (ibv_cq_ex): one completion at a time, with functions that read
// its fields.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace softnic {

// The supported fields. ibv_create_cq_ex fails if others are requested.
inline constexpr std::uint64_t kReadableFields = IBV_WC_STANDARD_FLAGS;

void install_poll_functions(ibv_cq_ex& cq);

}  // namespace softnic
