// SPDX-License-Identifier: Apache-2.0
//
// Asking a device what it is, in the shape that callers want. Read again whenever it is asked:
// ports and GIDs change while a job runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/verbs/api.h"

namespace beeline::verbs {

Result<ibv_device_attr> query_device(const Api& api, ibv_context* context);

struct PortAttr {
  ibv_port_attr attr = {};
  std::uint32_t active_speed_ex = 0;  // XDR and faster; 0 where the library is older
};
Result<PortAttr> query_port(const Api& api, ibv_context* context, std::uint8_t port);

// Effective speed of the port in Mbit/s, which differs from the link's on a bonded or virtual
// function. kUnsupported if the library or the device does not report it.
Result<std::uint64_t> query_port_speed(const Api& api, ibv_context* context, std::uint8_t port);

// Every valid entry of the tables of all ports of the device. kUnsupported if the library is older
// than rdma-core 33 or the kernel is older than 5.10; then query_gid reads one entry, without its
// type.
Result<std::vector<ibv_gid_entry>> query_gid_table(const Api& api, ibv_context* context,
                                                   std::size_t max_entries);
Result<ibv_gid> query_gid(const Api& api, ibv_context* context, std::uint8_t port, int index);

// In host order. 0: the entry is empty.
Result<std::uint16_t> query_pkey(const Api& api, ibv_context* context, std::uint8_t port,
                                 int index);

}  // namespace beeline::verbs
