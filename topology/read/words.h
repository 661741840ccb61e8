// SPDX-License-Identifier: Apache-2.0
//
// The words in which sysfs, and what copies from it, writes numbers. What cannot be read is
// nothing, never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace beeline::topology {

// "0x15b3" and "15b3", in capitals or not.
std::optional<std::uint32_t> parse_hex(std::string_view text) noexcept;
// "-1", "12".
std::optional<int> parse_int(std::string_view text) noexcept;

// A class in 24 bits: "0x030200". A shorter one is its beginning: "0x03", "0302".
std::optional<std::uint32_t> parse_pci_class(std::string_view text) noexcept;

// Millions of transfers a second: "16.0 GT/s PCIe", "16 GT/s", "2.5GT/s". Nothing for "", "Unknown"
// and the like.
std::optional<std::uint32_t> parse_link_rate(std::string_view text) noexcept;
// "16.0 GT/s PCIe", as newer kernels write it; empty for 0.
std::string link_rate_text(std::uint32_t mega_transfers);
// 1 to 32 lanes. The kernel writes 0 or 255 where there is no link.
std::optional<std::uint32_t> parse_link_width(std::string_view text) noexcept;

// Mbit/s of a network port: "400 Gb/sec (4X NDR)".
std::optional<std::uint32_t> parse_port_rate(std::string_view text) noexcept;

// The kernel's cpumap, 32 bits a group, the highest first: "ff,ffff0000" -> "16-39". Nothing if it
// is no mask, or of more processors than a machine has.
std::optional<std::string> list_of_mask(std::string_view mask);
// The other way; empty if the list is none.
std::string mask_of_list(std::string_view list);
// The first processor of a list, and the last.
std::optional<std::pair<int, int>> ends_of_list(std::string_view list) noexcept;
// Is it a list: "0-31,64-95", "3"?
bool is_cpu_list(std::string_view text) noexcept;

}  // namespace beeline::topology
