// SPDX-License-Identifier: Apache-2.0
// Checks that a whole fabric is consistent: no name or address is used twice, counts are in range,
// and the PCI paths form a tree. The spec must be complete(), so that assigned values are checked
// together with those of the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "softnic/spec/fabric_spec.h"

namespace softnic {

// The line of the file that defines a host, device or port: "h0", "h0/softnic0", "h0/softnic0:1".
using LineNumbers = std::map<std::string, std::uint32_t>;

std::string device_place(const HostSpec& host, const DeviceSpec& device);
std::string port_place(const HostSpec& host, const DeviceSpec& device, std::size_t port_index);

struct SpecFault {
  std::string place;  // a key of LineNumbers
  std::string reason;
};

// The first violation, if there is one.
std::optional<SpecFault> find_fault(const FabricSpec& spec);

}  // namespace softnic
