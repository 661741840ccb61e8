// SPDX-License-Identifier: Apache-2.0
//
// What a comm logs about its paths. Its own lines are at level INFO. It also tells PathLog, which
// logs one warning for many comms.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/recovery/recover.h"
#include "plugin/transfer/comm.h"

namespace beeline {
namespace {

using wire::PathTrouble;

// The local time `ago_ns` before now, as "2026-03-01 14:03:22".
std::string time_before(std::int64_t ago_ns) {
  const std::time_t then = std::time(nullptr) - ago_ns / kNsPerSec;
  std::tm parts = {};
  char text[32] = "";
  if (localtime_r(&then, &parts) != nullptr) std::strftime(text, sizeof text, "%F %T", &parts);
  return text;
}

std::string peer_port_name(const Comm& comm, const Path& path) {
  const std::string& port = path.resources->peer_device;
  return port.empty() ? comm.link().peer().device : port;
}

// PathNews::what for a port that has failed. `cause` is this end's; it is empty if the port is the
// other end's.
std::string what_of(PathTrouble trouble, std::string_view cause) {
  constexpr std::string_view kPortIs = "its port is ";
  if (trouble == PathTrouble::kDevice) return kDeviceIsGone;
  if (cause.starts_with(kPortIs)) return " went " + std::string(cause.substr(kPortIs.size()));
  if (!cause.empty()) return " has failed (" + std::string(cause) + ")";
  return trouble == PathTrouble::kPortDown ? " went DOWN" : " has another address";
}

bool is_of_port(PathTrouble trouble) noexcept {
  return trouble == PathTrouble::kPortDown || trouble == PathTrouble::kAddress ||
         trouble == PathTrouble::kDevice;
}

bool is_either(const PathRepair& known, PathTrouble trouble) noexcept {
  return known.trouble == trouble || known.their_trouble == trouble;
}

void add_once(std::vector<std::string>& all, std::string one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
}

std::string joined(const std::vector<std::string>& all, const char* between) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : between) + one;
  return text;
}

// The ports of the paths that are up: "nic1:1, nic2:1".
std::string ports_in_use(const Comm& comm) {
  std::vector<std::string> ports;
  for (const Path& path : comm.paths()) {
    if (comm.is_up(path.index)) add_once(ports, port_name(*path.resources->device));
  }
  return ports.size() > 3 ? std::to_string(ports.size()) + " other ports" : joined(ports, ", ");
}

}  // namespace

// The cause is at one of the two ports if the end with that port says so.
void Recover::note_place(Comm& comm, std::size_t index) {
  PathRepair& known = repair_of(comm, index);
  const Path& path = comm.paths()[index];
  const Device& device = *path.resources->device;
  const std::string& host = comm.link().peer().host;
  const std::string theirs = peer_port_name(comm, path);
  if (is_of_port(known.trouble)) {
    known.place = place_of_port(port_name(device));
    known.what = what_of(known.trouble, known.cause);
  } else if (is_of_port(known.their_trouble)) {
    known.place = place_of_port(theirs, host);
    known.what = what_of(known.their_trouble, {});
  } else {
    known.place =
        "the path from " + port_name(device) + " of this host to " + theirs + " of " + host;
    known.what = " has failed (" + known.cause + ")";
  }
  // What is waited for is the device that the path had at first.
  if (known.trouble == PathTrouble::kLeaves)
    known.place = place_of_port(port_name(path.own_device()));
  if (known.their_trouble == PathTrouble::kLeaves && !known.first_peer_port.empty())
    known.place = place_of_port(known.first_peer_port, host);
  known.left_port = port_name(device);
  known.left_peer_port = theirs;
}

void Recover::say_resumed(Comm& comm, std::size_t path) {
  note_place(comm, path);
  const PathRepair& known = repair_of(comm, path);
  const std::size_t all = comm.paths().size();
  const std::string name = comm.name_for_log(path);
  if (is_either(known, PathTrouble::kMoves)) return;  // it is back in a moment, and says so
  if (is_either(known, PathTrouble::kLeaves)) {
    BL_INFO(kLogNet, "%s: path %zu of %zu is left: %s", name.c_str(), path + 1, all,
            known.cause.c_str());
    return;
  }
  const bool is_theirs = is_of_port(known.their_trouble) && !is_of_port(known.trouble);
  const std::string cause = is_theirs ? known.place + known.what : known.cause;
  const std::int64_t held_ns = state_->engine.held_ns(path);
  PathNews news = {.place = known.place,
                   .what = known.what,
                   .other = ports_in_use(comm),
                   .ns = now_ns() - known.quiet_since_ns,
                   .is_held = held_ns != 0};
  if (news.other.empty()) {
    news.kind = PathNews::Kind::kStopped;
    BL_INFO(kLogNet,
            "%s: path %zu of %zu is out of use: %s. No other path works: the connection waits",
            name.c_str(), path + 1, all, cause.c_str());
  } else {
    BL_INFO(kLogNet, "%s: path %zu of %zu is out of use%s: %s. %s took over in %.1f ms",
            name.c_str(), path + 1, all,
            held_ns == 0
                ? ""
                : (" for " + std::to_string(held_ns / kNsPerSec) + " s, as it fails often").c_str(),
            cause.c_str(), news.other.c_str(), static_cast<double>(news.ns) / kNsPerMs);
  }
  comm.link().tell(std::move(news));
}

// A path that was missing when the connection was made is there.
void Recover::say_added(Comm& comm, std::size_t index) {
  const Path& path = comm.paths()[index];
  PathRepair& known = repair_of(comm, index);
  known.first_peer_port = path.resources->peer_device;
  note_place(comm, index);
  const std::int64_t took_ns = now_ns() - known.quiet_since_ns;
  BL_INFO(kLogNet, "%s: path %zu of %zu, which was missing, is in use after %.3f s",
          comm.name_for_log(index).c_str(), index + 1, comm.paths().size(),
          static_cast<double>(took_ns) / kNsPerSec);
  comm.link().tell({.kind = PathNews::Kind::kAdded, .place = known.place, .ns = took_ns});
}

void Recover::say_up(Comm& comm, const RepairCommand& command) {
  const std::size_t index = command.path;
  if (command.was_missing) return say_added(comm, index);
  const std::int64_t failed_ns = state_->engine.failed_ns(index);
  const std::int64_t took_ns = now_ns() - failed_ns;
  const Path& path = comm.paths()[index];
  // It was only slow, or its peer was: its next silence has to be longer.
  const bool was_wrong = command.was_silent && took_ns < times::kFalseAlarmNs &&
                         path.resources->device->history->newest_ns() < failed_ns;
  if (was_wrong) silence_->was_wrong_about(*path.silence);
  if (repair_of(comm, index).place.empty()) note_place(comm, index);
  const PathRepair& known = repair_of(comm, index);
  const std::string port = port_name(*path.resources->device);
  PathNews news = {.kind = PathNews::Kind::kBack, .place = known.place, .ns = took_ns};
  const bool has_moved = is_either(known, PathTrouble::kMoves);
  if (has_moved) {
    const bool is_ours = port != known.left_port;
    news.kind = PathNews::Kind::kMoved;
    news.place = is_ours ? place_of_port(port)
                         : place_of_port(peer_port_name(comm, path), comm.link().peer().host);
    news.other = is_ours ? known.left_port : known.left_peer_port;
    news.ns = now_ns() - known.quiet_since_ns;
  } else if (path.is_stand_in()) {
    news.kind = PathNews::Kind::kStandsIn;
    news.other = port;
  } else if (const std::string theirs = peer_port_name(comm, path);
             theirs != known.first_peer_port && !known.first_peer_port.empty()) {
    news.kind = PathNews::Kind::kStandsIn;
    news.other = theirs + " of " + comm.link().peer().host;
  }
  const std::string stands_in =
      path.is_stand_in() ? ". This device stands in for " + label(path.own_device()) : "";
  BL_INFO(kLogNet, "%s: path %zu of %zu is in use again after %.3f s (generation %u)%s",
          comm.name_for_log(index).c_str(), index + 1, comm.paths().size(),
          static_cast<double>(took_ns) / kNsPerSec, state_->engine.status(index).generation,
          stands_in.c_str());
  comm.link().tell(std::move(news));
}

void Recover::say_waiting(Comm& comm) {
  BL_INFO(kLogNet, "%s: the connection waits: %s", comm.name_for_log().c_str(),
          describe_outage(comm, "").c_str());
  std::vector<std::string> causes;
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    const PathRepair& known = repair_of(comm, path);
    if (known.place.empty()) note_place(comm, path);  // the other end has not answered
    add_once(causes, known.place + known.what);
  }
  comm.link().tell({.kind = PathNews::Kind::kStillWaits,
                    .what = joined(causes, "; "),
                    .ns = state_->engine.outage_ns(now_ns())});
}

std::string Recover::describe_outage(Comm& comm, const char* remark) {
  const std::int64_t length_ns = state_->engine.outage_ns(now_ns());
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", static_cast<double>(length_ns) / kNsPerSec);
  std::string text = "no path has worked since " + time_before(length_ns) + " (" + seconds + ")";
  text += remark;
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    const PathRepair& known = repair_of(comm, path);
    const Ends ends = ends_of(comm, path);
    text += ". Path " + std::to_string(path + 1) + " of " + std::to_string(comm.paths().size()) +
            ", between " + ends.here + " and " + ends.there + ", as " + ends.here +
            " sees it: " + known.cause;
    const std::uint32_t tries = state_->engine.tries(path);
    if (tries == 0) continue;
    text += "; attempts to connect it again: " + std::to_string(tries);
    if (!known.last_try.empty()) text += ", the last one failed: " + known.last_try;
  }
  return text;
}

}  // namespace beeline
