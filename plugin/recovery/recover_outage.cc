// SPDX-License-Identifier: Apache-2.0
//
// A comm without a path that works waits. It logs that once a minute, and fails after
// BEELINE_GIVE_UP_AFTER, if that is set.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/recovery/recover.h"
#include "plugin/transfer/comm.h"

namespace beeline {
namespace {

// The local time `ago_ns` before now, as "2026-03-01 14:03:22".
std::string time_before(std::int64_t ago_ns) {
  const std::time_t then = std::time(nullptr) - ago_ns / kNsPerSec;
  std::tm parts = {};
  char text[32] = "";
  if (localtime_r(&then, &parts) != nullptr) std::strftime(text, sizeof text, "%F %T", &parts);
  return text;
}

std::string outage_text(std::int64_t length_ns) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", static_cast<double>(length_ns) / kNsPerSec);
  return "no path has worked since " + time_before(length_ns) + " (" + seconds + ")";
}

std::string attempts_text(const Repair& repair) {
  if (repair.tries == 0) return {};
  return "; attempts to connect it again: " + std::to_string(repair.tries) +
         (repair.last_try.empty() ? "" : ", the last one failed: " + repair.last_try);
}

}  // namespace

std::string Recover::describe_paths(const Comm& comm) const {
  std::string text;
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    const Repair& repair = (*repairs_)[path];
    const Ends ends = ends_of(comm, path);
    text += (path == 0 ? "Path " : ". Path ") + std::to_string(path + 1) + " of " +
            std::to_string(comm.paths().size()) + ", between " + ends.here + " and " + ends.there +
            ", as " + ends.here + " sees it: " + repair.cause + attempts_text(repair);
  }
  return text;
}

void Recover::check_outage(Comm& comm, std::int64_t now) {
  const Outage::News news = outage_.look(!comm.has_usable_path(), now);
  if (news == Outage::News::kNone) return;
  const std::string text = outage_text(outage_.length_ns(now));
  if (news == Outage::News::kStillWaiting) {
    BL_WARN("%s: the connection waits: %s. %s", comm.name_for_log().c_str(), text.c_str(),
            describe_paths(comm).c_str());
    return;
  }
  const auto is_own_fault = [](const Repair& repair) { return !repair.status.is_port_well; };
  const Errc code =
      std::ranges::any_of(*repairs_, is_own_fault) ? Errc::kSystem : Errc::kPeerClosed;
  (void)give_up_.on_fault(
      comm, code, "go on",
      text + ", which is longer than BEELINE_GIVE_UP_AFTER. " + describe_paths(comm));
}

}  // namespace beeline
