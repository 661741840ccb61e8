// SPDX-License-Identifier: Apache-2.0
//
// Reads sysfs with system calls, without streams and their locale.
#include "plugin/device/sysfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "common/base/fd.h"
#include "topology/pci_address.h"

namespace beeline {

std::string read_line(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  char text[256];
  const ssize_t got = ::read(file.get(), text, sizeof text);
  if (got <= 0) return {};
  const std::string_view all(text, static_cast<std::size_t>(got));
  return std::string(all.substr(0, all.find('\n')));
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                             std::free);
  return resolved == nullptr ? std::string() : std::string(resolved.get());
}

std::string ibdev_dir(const std::string& root, std::string_view ibdev) {
  return root + "/class/infiniband/" + std::string(ibdev);
}

std::string port_dir(const std::string& root, std::string_view ibdev, int port) {
  return ibdev_dir(root, ibdev) + "/ports/" + std::to_string(port);
}

std::string_view base_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: no slash, all of it
}

std::string pci_function_of(std::string path) {
  while (!path.empty() && !topology::parse_pci_address(base_name(path))) {
    const auto slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
  return path;
}

std::string card_path_of(const std::string& function) {
  if (function.empty()) return {};
  const std::string physical = real_path(function + "/physfn");
  const std::string& own = physical.empty() ? function : physical;
  std::string first = own;
  first.back() = '0';
  return real_path(first).empty() ? own : first;
}

}  // namespace beeline
