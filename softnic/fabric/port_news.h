// SPDX-License-Identifier: Apache-2.0
// What the world is shown and told of a port: its files in sysfs, its asynchronous events.
#pragma once

#include <cstdint>

#include "softnic/fabric/port_ref.h"

namespace softnic {

void show_state(const Fabric& fabric, PortRef where);
void show_gid_entry(const Fabric& fabric, PortRef where, std::uint32_t index);
void show_pkey_entry(const Fabric& fabric, PortRef where);
void show_port(const Fabric& fabric, PortRef where);  // all of it

// The events of a state and a P_Key that nobody was told of yet: once for every change, or twice if
// who told it died before noting that.
void tell_state(const Fabric& fabric, PortRef where);
void tell_pkey(const Fabric& fabric, PortRef where);
// An event of the port, or of its whole device, whatever happened.
void tell(const Fabric& fabric, PortRef where, std::uint32_t event_type);

}  // namespace softnic
