// SPDX-License-Identifier: Apache-2.0
//
// By which device a path is made anew: its own, which may have been removed and come back, or, if
// no path of the comm works, one that stands in until its own device is well again. All paths of a
// rail use the same device, because the keys of buffers are by rail.
#include <algorithm>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "plugin/device/port_report.h"
#include "plugin/recovery/recover.h"
#include "plugin/recovery/times.h"
#include "plugin/transfer/comm.h"

namespace beeline {
namespace {

// How many attempts a sender makes with one device: the receiver may try several in the meantime.
constexpr std::uint32_t kTriesOfSender = 8;

}  // namespace

const Device& Recover::own_device(const Comm& comm, std::size_t path) noexcept {
  return comm.own_device(path);
}

bool Recover::is_stand_in(const Comm& comm, std::size_t path) noexcept {
  return comm.paths()[path].device->index != own_device(comm, path).index;
}

bool Recover::may_stand_in(const Comm& comm, std::size_t path) const noexcept {
  const bool is_gone = own_device(comm, path).context->is_gone();
  const std::int64_t patience = is_gone ? 0 : times::kStandInAfterNs;
  return !comm.has_usable_path() && outage_.has_lasted(patience, now_ns()) && comm.has_standby();
}

bool Recover::is_usable(const Comm& comm, std::size_t path) {
  const Repair& repair = repair_of(comm, path);
  if (repair.is_device_gone && !repair.is_device_left) return false;
  const Device& own = own_device(comm, path);
  if (!own.context->is_gone() && query_own_port(own, comm.paths()[path].own).is_active()) {
    return true;
  }
  return may_stand_in(comm, path);
}

bool Recover::fits_rail(const Comm& comm, std::size_t path, const Device& device) noexcept {
  for (std::size_t other = 0; other < comm.paths().size(); ++other) {
    const bool is_beside =
        other != path && comm.is_up(other) && comm.paths()[other].rail == comm.paths()[path].rail;
    if (is_beside && comm.paths()[other].device != &device) return false;
  }
  return true;
}

std::vector<const Device*> Recover::devices_for(const Comm& comm, std::size_t path) {
  std::vector<const Device*> devices;
  const auto add = [&](const Device& device) {
    if (!device.context->is_gone() && fits_rail(comm, path, device)) devices.push_back(&device);
  };
  const Device& own = own_device(comm, path);
  add(own);
  if (!may_stand_in(comm, path)) return devices;
  for (const Device* const other : comm.standbys_for(own)) {
    if (!comm.is_own(*other)) add(other->newest());
  }
  // A device that stands in may not reach the peer, so each has its turn.
  const std::uint32_t tries = repair_of(comm, path).tries;
  const std::uint32_t turn = comm.role() == Role::kSend ? tries / kTriesOfSender : tries;
  if (!devices.empty()) {
    const auto first = devices.begin() + turn % devices.size();
    std::rotate(devices.begin(), first, devices.end());
  }
  return devices;
}

std::int64_t Recover::standbys_due_ns(const Comm& comm, std::int64_t now) const noexcept {
  const std::int64_t patient_until = outage_.lasts_at_ns(times::kStandInAfterNs);
  const bool has_called = has_called_standbys_ || !comm.has_standby();
  if (has_called || patient_until == Outage::kNever) return Outage::kNever;
  return std::max(patient_until, now + times::kStandInLookEveryNs);
}

// From now on paths whose own device does not work can be made by others.
void Recover::advance_standbys(Comm& comm, std::int64_t now) {
  if (comm.has_usable_path()) {
    has_called_standbys_ = false;
    return;
  }
  if (has_called_standbys_) return;
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    Repair& repair = repair_of(comm, path);
    const bool is_clear = repair.status.state == PathState::kClear;
    if (!is_clear || comm.paths()[path].queues.cm || !may_stand_in(comm, path)) continue;
    if (!is_usable(comm, path)) continue;
    has_called_standbys_ = true;
    take_local(comm, path, PathEvent::Kind::kPortWell);
    if (repair.status.state == PathState::kClear) repair.attempts.set_due(now);
  }
}

// One that carries data, or null.
const Device* Recover::own_device_in_use(const Comm& comm) noexcept {
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    if (comm.is_up(path) && !is_stand_in(comm, path)) return comm.paths()[path].device;
  }
  return nullptr;
}

// A device that stands in may be far from the GPU, and has its own connections to serve, so it does
// not carry data beside one of the comm's own. If both ends have devices that stand in, for
// different paths, only one of them may leave: the sender is faster. Neither leaves before the own
// device has worked for a while: its link may flap.
bool Recover::leave_beside_own(Comm& comm, std::size_t path, std::int64_t now) {
  Repair& repair = repair_of(comm, path);
  const Device* const works = own_device_in_use(comm);
  if (works == nullptr) {
    repair.beside_own_ns = 0;
    return false;
  }
  if (repair.beside_own_ns == 0) repair.beside_own_ns = now;
  const std::int64_t patience =
      comm.role() == Role::kSend ? times::kSenderBesideOwnNs : times::kReceiverBesideOwnNs;
  if (now - repair.beside_own_ns < patience) return false;
  leave_stand_in(comm, path,
                 label(*works) + " works again, so " + label(*comm.paths()[path].device) +
                     " is no longer used in place of " + label(own_device(comm, path)));
  return true;
}

// While another device stands in for it.
void Recover::check_own_device(Comm& comm, std::size_t path, std::int64_t now) {
  Repair& repair = repair_of(comm, path);
  const Device& own = own_device(comm, path);
  if (!is_stand_in(comm, path) || !comm.is_up(path)) {
    repair.look_ns = BackOff::kNever;
    repair.own_well_ns = 0;
    repair.beside_own_ns = 0;
    return;
  }
  if (repair.look_ns != BackOff::kNever && now < repair.look_ns) return;
  repair.look_ns = now + times::kOwnLookEveryNs;
  if (leave_beside_own(comm, path, now)) return;
  const bool is_well =
      !own.context->is_gone() && query_own_port(own, comm.paths()[path].own).is_active();
  if (!is_well) {
    repair.own_well_ns = 0;
  } else if (repair.own_well_ns == 0) {
    repair.own_well_ns = now;
    if (repair.has_gone_back)
      repair.well_for_ns = std::min(2 * repair.well_for_ns, times::kLongestWellForNs);
    repair.has_gone_back = false;
  } else if (now - repair.own_well_ns >= repair.well_for_ns) {
    repair.has_gone_back = true;
    leave_stand_in(comm, path,
                   label(own) + " works again, for which " + label(*comm.paths()[path].device) +
                       " has stood in");
  }
}

// The path is made anew when its own device works.
void Recover::leave_stand_in(Comm& comm, std::size_t path, const std::string& cause) {
  const std::uint8_t rail = comm.paths()[path].rail;
  for (std::size_t one = 0; one < comm.paths().size(); ++one) {
    if (comm.paths()[one].rail == rail && comm.is_up(one)) fail_path(comm, one, cause);
  }
}

}  // namespace beeline
