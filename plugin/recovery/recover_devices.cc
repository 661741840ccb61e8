// SPDX-License-Identifier: Apache-2.0
//
// By which device a path is made anew: its own, which may have been removed and come back, or, if
// no path of the comm works, one that stands in until its own device is well again. All paths of a
// rail use the same device, because the keys of buffers are by rail.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plugin/device/port_report.h"
#include "plugin/recovery/recover.h"
#include "plugin/transfer/comm.h"

namespace beeline {

RepairEvent Recover::ask_own_port(const Comm& comm, std::size_t path) {
  const Device& own = comm.paths()[path].own_device();
  RepairEvent event = {.kind = RepairEvent::Kind::kOwnPort,
                       .path = static_cast<std::uint8_t>(path)};
  event.is_gone = own.context->is_gone();
  event.is_active =
      !event.is_gone && query_own_port(own, comm.paths()[path].resources->own).is_active();
  return event;
}

bool Recover::fits_rail(const Comm& comm, std::size_t path, const Device& device) noexcept {
  for (std::size_t other = 0; other < comm.paths().size(); ++other) {
    const bool is_beside =
        other != path && comm.is_up(other) && comm.paths()[other].rail == comm.paths()[path].rail;
    if (is_beside && comm.paths()[other].resources->device != &device) return false;
  }
  return true;
}

std::vector<const Device*> Recover::devices_for(const Comm& comm, std::size_t path,
                                                bool may_stand_in, std::uint32_t turn) {
  std::vector<const Device*> devices;
  const auto add = [&](const Device& device) {
    if (!device.context->is_gone() && fits_rail(comm, path, device)) devices.push_back(&device);
  };
  const Device& own = comm.paths()[path].own_device();
  add(own);
  if (!may_stand_in) return devices;
  for (const Device* const other : comm.standbys_for(own)) {
    if (!comm.is_own(*other)) add(other->newest());
  }
  // A device that stands in may not reach the peer, so each has its turn.
  if (!devices.empty())
    std::rotate(devices.begin(), devices.begin() + turn % devices.size(), devices.end());
  return devices;
}

// Which devices of both ends reach each other is not known. For each device of the sender, the
// receiver begins with its own.
std::uint32_t Recover::turn_for(PathRepair& known, const wire::OfferPath& offer) {
  const std::pair port(offer.offer.qp.device, offer.offer.qp.port);
  const bool is_again = std::exchange(known.offering_port, port) == port;
  known.offers_by_port = is_again ? known.offers_by_port + 1 : 0;
  return known.offers_by_port;
}

std::string Recover::why_stand_in_leaves(const Comm& comm, std::size_t left) {
  const std::string own = label(comm.paths()[left].own_device());
  const std::string stand_in = label(*comm.paths()[left].resources->device);
  std::string works;
  for (std::size_t path = 0; path < comm.paths().size() && works.empty(); ++path) {
    if (comm.is_up(path) && !comm.paths()[path].is_stand_in())
      works = label(*comm.paths()[path].resources->device);
  }
  return works + " works again, so " + stand_in + " is no longer used in place of " + own;
}

}  // namespace beeline
