// SPDX-License-Identifier: Apache-2.0
//
// The kernel's RDMA netlink interface, for the one thing that only it tells of every device: which
// network interface a port belongs to (what `rdma link` prints).
#pragma once

#include <cstdint>
#include <string>

namespace beeline {

// Empty: the port has none, it is in another network namespace, or the kernel does not tell.
std::string netdev_by_netlink(const std::string& ibdev, std::uint8_t port);

}  // namespace beeline
