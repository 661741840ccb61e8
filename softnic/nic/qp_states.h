// SPDX-License-Identifier: Apache-2.0
// The transition table of reliable-connection queue pairs: which moves exist, what each needs and
// what it may carry besides (InfiniBand specification, 10.3.1, and the verbs manual).
#pragma once

#include <infiniband/verbs.h>

namespace softnic {

// 0, or EINVAL if there is no such move or the mask lacks or exceeds what it takes.
int check_transition(ibv_qp_state from, ibv_qp_state to, int mask) noexcept;

}  // namespace softnic
