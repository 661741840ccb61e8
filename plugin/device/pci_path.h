// SPDX-License-Identifier: Apache-2.0
//
// Where a device sits, as the paths of sysfs say it.
#pragma once

#include <string>
#include <string_view>

namespace beeline {

// The last directory of the path.
std::string_view base_name(std::string_view path) noexcept;

// The PCI function that a device directory belongs to: the path itself, or the nearest one above
// (a sub-function lies in its parent's directory). Empty when there is none.
std::string pci_function_of(std::string path);

// The first function of the card that a PCI function belongs to; a virtual function's is that of
// the physical one. The path itself where sysfs does not show another.
std::string card_path_of(const std::string& function);

}  // namespace beeline
