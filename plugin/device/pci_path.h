// SPDX-License-Identifier: Apache-2.0
//
// Finds PCI functions and cards from paths in sysfs.
#pragma once

#include <string>
#include <string_view>

namespace beeline {

// The last directory of the path.
std::string_view base_name(std::string_view path) noexcept;

// The PCI function to which a device directory belongs: the path itself, or its nearest parent that
// is one (a subfunction is in the directory of its PCI function). Empty if there is none.
std::string pci_function_of(std::string path);

// The first function of the card to which a PCI function belongs. For a virtual function, it is
// that of the physical function. The path itself if sysfs does not show another one.
std::string card_path_of(const std::string& function);

}  // namespace beeline
