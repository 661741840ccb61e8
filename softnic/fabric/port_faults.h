// SPDX-License-Identifier: Apache-2.0
// Changes to a port record, one function for each command. The values of a fault are stored before
// the bit in PortRecord::faults that makes senders read them. If a process dies half-way, repeating
// the call completes it.
#pragma once

#include <cstdint>

#include "softnic/fabric/layout.h"
#include "softnic/fabric/port_command.h"

namespace softnic {

void switch_port(PortRecord& port, bool up);

void shape(PortRecord& port, std::uint64_t rate_bytes_s, std::uint64_t latency_ns);
void set_jitter(PortRecord& port, std::uint64_t ns);
void set_loss(PortRecord& port, std::uint32_t ppm);
void set_sent_loss(PortRecord& port, std::uint32_t ppm);
void lose_over(PortRecord& port, std::uint64_t bytes);

void black_hole(PortRecord& port);
void pause_until(PortRecord& port, std::uint64_t monotonic_ns);
void resume(PortRecord& port);

void arm_error(PortRecord& port, std::uint32_t status, std::uint64_t countdown);
void arm_corruption(PortRecord& port, std::uint64_t countdown);
void arm_discard(PortRecord& port, std::uint64_t most_bytes, std::uint64_t countdown);
void disarm(PortRecord& port);

// Marks the entry as empty while its words change.
void set_gid(PortRecord& port, const PortCommand& command);

}  // namespace softnic
