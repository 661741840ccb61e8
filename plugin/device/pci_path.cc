// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/pci_path.h"

#include "plugin/device/sysfs.h"
#include "topology/pci_address.h"

namespace beeline {

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
