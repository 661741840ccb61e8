// SPDX-License-Identifier: Apache-2.0
//
// Reads files and links of sysfs, below a root directory that tests can choose. A missing file
// gives an empty text, since no device has all of them.
#pragma once

#include <string>
#include <string_view>

namespace beeline {

// The first line, without the newline.
std::string read_line(const std::string& path);
// The path with all symbolic links resolved.
std::string real_path(const std::string& path);

// "<root>/class/infiniband/mlx5_0"
std::string ibdev_dir(const std::string& root, std::string_view ibdev);
// "<root>/class/infiniband/mlx5_0/ports/1"
std::string port_dir(const std::string& root, std::string_view ibdev, int port);

// The last directory of the path.
std::string_view base_name(std::string_view path) noexcept;

// The PCI function to which a device directory belongs: the path itself, or its nearest parent that
// is one (a subfunction is in the directory of its PCI function). Empty if there is none.
std::string pci_function_of(std::string path);

// The first function of the card to which a PCI function belongs. For a virtual function, it is
// that of the physical function. The path itself if sysfs does not show another one.
std::string card_path_of(const std::string& function);

}  // namespace beeline
