// SPDX-License-Identifier: Apache-2.0
//
// Tells the NICs that jobs use from others that a host has as well, for its storage or its
// management: those need not be as fast as the rails, and a smaller MTU on them is no fault.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "plugin/checks/host.h"

namespace beeline::checks {

// The names of the rails. A NIC is no rail if others of another model have more than twice the
// bandwidth together, or if each GPU has a nearer NIC. Without GPUs, or where the PCI tree is
// hidden, only the bandwidth counts.
//
// The bandwidth of a model without an active port is unknown. Its NICs are rails if one is on a
// GPU's side of the processor, where no NIC is active, or if their cards, as fast as the fastest
// port of the host, would have more bandwidth than the others.
std::set<std::string> rails_of(const Host& host);

// GPUs without a NIC below their PCIe root port, on a host on which nearly all others have one.
struct LostNics {
  std::string model;  // of the NICs of the other GPUs
  std::set<std::string> gpus;
  std::size_t others = 0;  // GPUs that have one
};
// Empty: no NIC is missing, or the host is built so.
std::optional<LostNics> lost_nics(const Host& host);

}  // namespace beeline::checks
