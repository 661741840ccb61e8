// SPDX-License-Identifier: Apache-2.0
// Functions for the operations table of verbs_context.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace softnic {

int query_port(ibv_context* context, std::uint8_t port_number, ibv_port_attr* attr,
               std::size_t attr_size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t attr_size);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init);

}  // namespace softnic
