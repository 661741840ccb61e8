// SPDX-License-Identifier: Apache-2.0
// Makes changes of a port visible to programs: its sysfs files and its asynchronous events.
#pragma once

#include <cstdint>

#include "softnic/fabric/port_ref.h"

namespace softnic {

void show_state(const Fabric& fabric, PortRef where);
void show_gid_entry(const Fabric& fabric, PortRef where, std::uint32_t index);
void show_pkey_entry(const Fabric& fabric, PortRef where);
void show_lid_of(const Fabric& fabric, PortRef where);
void show_port(const Fabric& fabric, PortRef where);  // all of them

// Send the events for a state and a P_Key that were not reported yet: one event for every change,
// or two if a process died before it recorded the event. For a device that hides events, a change
// of the state counts as reported.
void report_state(const Fabric& fabric, PortRef where);
void report_pkey(const Fabric& fabric, PortRef where);
// Sends an event of the port, or of its device if the event is one of devices.
void report_event(const Fabric& fabric, PortRef where, std::uint32_t event_type);

}  // namespace softnic
