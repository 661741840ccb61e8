// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/pending_comm.h"

#include <utility>

#include "common/base/host.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

// "path 1", "paths 1 and 3", "paths 1, 2 and 3".
std::string numbers_text(const std::vector<std::uint8_t>& numbers) {
  std::string text = numbers.size() == 1 ? "path " : "paths ";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " and " : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

// The devices of one end, each once: "mlx5_0 port 1 + mlx5_1 port 1".
std::string devices_text(const Connection& connection) {
  std::vector<const Device*> named;
  std::string text;
  for (const PathResources& path : connection.paths) {
    if (path.is_missing() || std::ranges::find(named, path.device) != named.end()) continue;
    named.push_back(path.device);
    text += (text.empty() ? "" : " + ") + label(*path.device);
  }
  return text;
}

// A failure of this end explains more than one that both ends have in common, and what only the
// peer knows comes last.
int rank_of(wire::RejectCode code) {
  switch (code) {
    case wire::RejectCode::kFailed: return 0;
    case wire::RejectCode::kIncompatible: return 1;
    case wire::RejectCode::kUnknownListener:
    case wire::RejectCode::kAbandoned: return 2;
  }
  return 2;
}

}  // namespace

std::string port_text(const Device& device) { return host_name() + " " + label(device); }

std::string PendingComm::own_name() const {
  std::string text = host_name();
  for (const Device* const device : devices) {
    text += (device == devices.front() ? " " : ", ") + label(*device);
  }
  return text;
}

std::vector<std::uint8_t> PendingComm::path_numbers() const {
  std::vector<std::uint8_t> numbers;
  if (!end) return numbers;
  for (const auto& [number, path] : end->paths()) numbers.push_back(number);
  return numbers;
}

bool PendingComm::has_connected_directly() const noexcept {
  return std::ranges::all_of(end->paths(), [&](const auto& entry) {
    return entry.second.is_connected() || cm.contains(entry.first);
  });
}

void PendingComm::leave_out(std::uint8_t path, const HandshakeFailure& why) {
  cm.erase(path);
  if (end) end->drop_path(path);
  missing.try_emplace(path, why);
}

HandshakeFailure PendingComm::no_path_left() const {
  BL_ASSERT(!has_paths() && !missing.empty(), "every path is missing, and each has its reason");
  const auto first = std::ranges::min_element(
      missing, {}, [](const auto& entry) { return rank_of(entry.second.code); });
  HandshakeFailure failure = first->second;
  if (!has_one_path()) failure.text = "no path can be made: " + missing_text();
  return failure;
}

HandshakeFailure PendingComm::lost_path(std::uint8_t path, const HandshakeFailure& why) const {
  HandshakeFailure failure = why;
  if (!has_one_path()) {
    failure.text =
        numbers_text({path}) + " was lost when the other end used it already: " + why.text;
  }
  return failure;
}

std::vector<wire::MissingPath> PendingComm::missing_paths() const {
  std::vector<wire::MissingPath> paths;
  for (const auto& [number, failure] : missing) {
    paths.push_back({.number = number, .why = failure.text});
  }
  return paths;
}

// Several paths often have one cause, because they share a rail.
std::string PendingComm::missing_text() const {
  std::map<std::string, std::vector<std::uint8_t>> by_cause;
  for (const auto& [number, failure] : missing) by_cause[failure.text].push_back(number);
  std::string text;
  for (const auto& [number, failure] : missing) {
    const std::vector<std::uint8_t>& alike = by_cause[failure.text];
    if (alike.front() != number) continue;
    text += (text.empty() ? "" : ", ") + numbers_text(alike) + " (" + failure.text + ")";
  }
  return text;
}

RailPorts::RailPorts(const PendingComm& comm, const std::vector<std::uint8_t>& paths,
                     PortWatch& ports)
    : comm_(&comm), ports_(&ports) {
  has_active_ = std::ranges::any_of(paths, [&](std::uint8_t path) {
    const Result<const PortFacts*> facts = ports.facts(comm.device_of(path));
    return facts && (*facts)->is_active();
  });
}

Result<const PortFacts*, HandshakeFailure> RailPorts::facts(std::uint8_t path) const {
  const Device& device = comm_->device_of(path);
  const Result<const PortFacts*> facts = ports_->facts(device);
  if (!facts) {
    return fail(HandshakeFailure{.text = port_text(device) + ": " + describe(facts.error()),
                                 .error = facts.error()});
  }
  if (has_active_ && !(*facts)->is_active()) {
    return fail(HandshakeFailure{
        .text = port_text(device) + " is " + verbs::port_state_text((*facts)->state),
        .error = fail(Errc::kSystem, "connect a path whose port is not active").error});
  }
  return *facts;
}

Outcome<void> check_path_numbers(const PathLayout& layout, const std::vector<std::uint8_t>& paths,
                                 const std::vector<wire::MissingPath>& missing) {
  const std::size_t named = paths.size() + missing.size();
  if (named != layout.count) {
    return fail("it names " + std::to_string(named) + (named == 1 ? " path" : " paths") +
                " instead of " + std::to_string(layout.count));
  }
  std::uint8_t last = 0;
  for (const std::uint8_t path : paths) last = std::max(last, path);
  for (const wire::MissingPath& path : missing) last = std::max(last, path.number);
  if (last < layout.count) return {};
  return fail("it names path " + std::to_string(last) + ", and the last one is path " +
              std::to_string(layout.count - 1));
}

MadeConnection make_connection(PendingComm& comm, Role role, const wire::Window& peer_window) {
  BL_ASSERT(comm.end->is_connected(), "a comm gets connected paths only");
  auto made = std::make_unique<Connection>(std::move(*comm.end).finish(role, peer_window));
  made->devices = comm.devices;
  made->receiver_rails = role == Role::kReceive ? comm.layout.rails : comm.layout.peer_rails;
  made->planned_paths = comm.layout.count;
  return made;
}

std::string connection_text(const Connection& connection) {
  const bool connects = connection.role == Role::kSend;
  const std::string devices = devices_text(connection);
  const std::string peer = connection.link->peer().text();
  std::string text = connects ? "connected " + devices + " to " + peer  //
                              : "accepted " + peer + " on " + devices;
  if (connection.planned_paths > 1) {
    const auto made = static_cast<std::size_t>(
        std::ranges::count(connection.paths, false, &PathResources::is_missing));
    const std::size_t planned = connection.planned_paths;
    text += " over " + (made < planned ? std::to_string(made) + " of " : "") +
            std::to_string(planned) + " paths";
  }
  for (const PathResources& path : connection.paths) {
    if (path.is_missing()) continue;
    text += ", qp " + std::to_string(path.queues.qp->qp_num) + (connects ? " to " : " from ") +
            std::to_string(path.peer_qpn);
  }
  return text;
}

void log_layout(const PendingComm& comm) {
  const PathLayout& layout = comm.layout;
  if (layout.wanted <= layout.count) return;
  BL_INFO(kLogNet,
          "%s and %s have enough rails and queue pairs for %d paths; a connection has %d at most, "
          "so the others are not made",
          comm.own_name().c_str(), comm.peer.c_str(), int{layout.wanted}, int{layout.count});
}

std::string connecting_timeout_text(const PendingComm& comm, std::uint8_t path,
                                    const std::string& limit) {
  const auto setup = comm.cm.find(path);
  if (setup != comm.cm.end()) return setup->second->timeout_text(limit);
  const std::string rail = std::to_string(comm.layout.place(path).peer_rail);
  return port_text(comm.device_of(path)) + " could not resolve the address of " +
         (comm.has_one_path() ? "" : "rail " + rail + " of ") + comm.peer + " " + limit;
}

std::string connecting_timeout_text(const PendingComm& comm, const std::string& limit) {
  for (const auto& [number, path] : comm.end->paths()) {
    if (!path.is_connected()) return connecting_timeout_text(comm, number, limit);
  }
  return comm.own_name() + " could not resolve the address of " + comm.peer + " " + limit;
}

std::string timeout_limit_text(const ControlOptions& options) {
  return "within " + seconds_text(options.connect_timeout);
}

}  // namespace beeline
