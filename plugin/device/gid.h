// SPDX-License-Identifier: Apache-2.0
//
// The addresses of a port: GIDs as bytes, and functions that classify them.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/wire/port_types.h"

namespace beeline {

using wire::AddressFamily;
using wire::Gid;
using wire::GidEntry;
using wire::GidRange;
using wire::GidType;

const char* to_string(GidType type) noexcept;  // "IB", "RoCE v1", "RoCE v2"

bool is_zero(const Gid& gid) noexcept;
bool is_ipv4_mapped(const Gid& gid) noexcept;          // ::ffff:a.b.c.d
bool is_link_local(const Gid& gid) noexcept;           // fe80::/10, and 169.254.0.0/16 mapped
std::uint64_t subnet_prefix(const Gid& gid) noexcept;  // the upper half, host order
// InfiniBand with routers: the LID to which packets for another subnet are sent (FLID). The subnet
// manager writes it into the port's GID. 0: none.
std::uint16_t flid_of(const Gid& gid) noexcept;
// The number of leading bits that are equal, 0 to 128.
int common_prefix(const Gid& a, const Gid& b) noexcept;
inline bool is_in(const GidRange& range, const Gid& gid) noexcept {
  return common_prefix(range.base, gid) >= range.prefix;
}
// "10.0.1.2" if it is IPv4-mapped, otherwise "fe80::1:2".
std::string to_string(const Gid& gid);

}  // namespace beeline
