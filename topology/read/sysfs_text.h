// SPDX-License-Identifier: Apache-2.0
//
// Converts between numbers and the texts in which sysfs, and files derived from it, contain them. A
// text that cannot be parsed gives no value, never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace beeline::topology {

// "0x15b3" and "15b3", in upper or lower case.
std::optional<std::uint32_t> parse_hex(std::string_view text) noexcept;
// "-1", "12".
std::optional<int> parse_int(std::string_view text) noexcept;

// A class of 24 bits: "0x030200". A shorter text is the beginning of it: "0x03", "0302".
std::optional<std::uint32_t> parse_pci_class(std::string_view text) noexcept;

// Millions of transfers a second: "16.0 GT/s PCIe", "16 GT/s", "2.5GT/s". Nothing for "", "Unknown"
// and the like.
std::optional<std::uint32_t> parse_link_rate(std::string_view text) noexcept;
// "16.0 GT/s PCIe", as newer kernels write it; empty for 0.
std::string link_rate_text(std::uint32_t mega_transfers);
// 1 to 32 lanes. The kernel writes 0 or 255 if there is no link.
std::optional<std::uint32_t> parse_link_width(std::string_view text) noexcept;

// Mbit/s of a network port: "400 Gb/sec (4X NDR)".
std::optional<std::uint32_t> parse_port_rate(std::string_view text) noexcept;

// The kernel's cpumap, in groups of 32 bits, the highest first: "ff,ffff0000" -> "16-39". Empty if
// it is not a mask, or if it names more processors than a machine has.
std::optional<std::string> list_of_mask(std::string_view mask);
// The opposite; empty if the text is not a list.
std::string mask_of_list(std::string_view list);
// The first processor of a list, and the last.
std::optional<std::pair<int, int>> ends_of_list(std::string_view list) noexcept;
// Whether the text is a list such as "0-31,64-95" or "3".
bool is_cpu_list(std::string_view text) noexcept;

}  // namespace beeline::topology
