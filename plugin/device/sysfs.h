// SPDX-License-Identifier: Apache-2.0
//
// Small files and links of sysfs, below a root that tests may move. What is absent is empty: no
// device has all of them.
#pragma once

#include <string>
#include <string_view>

namespace beeline {

// The first line, without its end.
std::string read_line(const std::string& path);
// With all links resolved.
std::string real_path(const std::string& path);

// "<root>/class/infiniband/mlx5_0"
std::string ibdev_dir(const std::string& root, std::string_view ibdev);
// "<root>/class/infiniband/mlx5_0/ports/1"
std::string port_dir(const std::string& root, std::string_view ibdev, int port);

}  // namespace beeline
