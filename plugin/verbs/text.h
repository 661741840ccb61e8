// SPDX-License-Identifier: Apache-2.0
//
// Texts for verbs enumerators. They do not call the library.
#pragma once

#include <infiniband/verbs.h>

namespace beeline::verbs {

const char* wc_status_text(ibv_wc_status status) noexcept;   // "transport retry counter exceeded"
const char* event_text(ibv_event_type type) noexcept;        // "port error"
const char* port_state_text(ibv_port_state state) noexcept;  // "DOWN"
int mtu_bytes(ibv_mtu mtu) noexcept;                         // 4096; 0 if it is not an MTU

}  // namespace beeline::verbs
