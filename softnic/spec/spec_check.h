// SPDX-License-Identifier: Apache-2.0
// The rules that a fabric must keep as a whole: nothing twice, nothing out of range, a PCI tree
// that is a tree. Works on a completed spec, so that what was assigned is checked with what was
// written.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "softnic/spec/fabric_spec.h"

namespace softnic {

// Where in the file a thing stands, by its place: "h0", "h0/softnic0", "h0/softnic0:1".
using LineBook = std::map<std::string, std::uint32_t>;

std::string device_place(const HostSpec& host, const DeviceSpec& device);
std::string port_place(const HostSpec& host, const DeviceSpec& device, std::size_t port_index);

struct SpecFault {
  std::string place;  // a key of the LineBook
  std::string reason;
};

// The first broken rule, or none.
std::optional<SpecFault> find_fault(const FabricSpec& spec);

}  // namespace softnic
