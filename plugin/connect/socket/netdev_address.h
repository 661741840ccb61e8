// SPDX-License-Identifier: Apache-2.0
//
// The IP addresses of an RDMA device's network interface. The connection manager finds the device
// by them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "plugin/wire/handle.h"

namespace beeline {

struct NetdevAddress {
  wire::SocketAddress address;  // without a port
  int prefix = 0;               // length of the subnet's prefix, in bits
};

Result<std::vector<NetdevAddress>> addresses_of(const std::string& netdev);

bool is_in_subnet(const NetdevAddress& ours, const wire::SocketAddress& other) noexcept;

// The local address by which to connect to a peer with the addresses `theirs`, which may be empty
// if they are not known. An address in a subnet of the peer's is best; then IPv4 goes before IPv6,
// and link-local addresses go last. Null if no address is of a family that the peer has.
const NetdevAddress* choose_address(std::span<const NetdevAddress> ours,
                                    std::span<const wire::SocketAddress> theirs) noexcept;

}  // namespace beeline
