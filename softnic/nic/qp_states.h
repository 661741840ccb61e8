// SPDX-License-Identifier: Apache-2.0
// The state transitions of reliable-connection queue pairs, with the required and optional
// attributes of each (InfiniBand specification, 10.3.1, and the manual of ibv_modify_qp).
#pragma once

#include <infiniband/verbs.h>

namespace softnic {

// Returns 0, or EINVAL if there is no such transition or the mask is wrong for it.
int check_transition(ibv_qp_state from, ibv_qp_state to, int mask) noexcept;

}  // namespace softnic
