// SPDX-License-Identifier: Apache-2.0
//
// What connections and ports report to PathLog (path_log.h).
#pragma once

#include <cstdint>
#include <string>

namespace beeline {

// "port nic0:1 of this host"
inline std::string place_of_port(const std::string& port, const std::string& host = "this host") {
  return "port " + port + " of " + host;
}

struct PathNews {
  enum class Kind : std::uint8_t {
    kLeft,        // a path has failed, and data goes over `other`; it stood still for `ns`
    kStopped,     // a path has failed, and no other works
    kStandsIn,    // a path is in use again by another device, `other`, `ns` after it had failed
    kBack,        // a path is in use again, `ns` after it had failed
    kMoved,       // a path is used by its own device again, no longer by `other`; its data stood
                  // still for `ns`
    kMissing,     // a connection was made without paths; `place` names them, with the reasons
    kAdded,       // such a path is in use, `ns` after its connection was made
    kStillWaits,  // no path has worked for `ns`; `what` says why
  };

  Kind kind = Kind::kLeft;
  // Tells connections apart. It is never used as a pointer.
  const void* connection = nullptr;
  // Where the cause is: "port nic0:1 of this host", or "the path from nic0:1 of this host to nic0:1
  // of h2" if that is not known.
  std::string place = {};
  // The line of the log continues with it after `place`, so it begins with a space: " went DOWN".
  std::string what = {};
  std::string other = {};
  std::int64_t ns = 0;
  // With kLeft and kStopped: the path has failed often, so it is not used again at once.
  bool is_held = false;
};

struct PortNews {
  enum class Kind : std::uint8_t { kDown, kUp };

  Kind kind = Kind::kDown;
  std::string place;
  std::string what;  // " is ACTIVE again"
};
// PortNews::what of an event. A connection queries the port, so its PathNews::what says more.
inline constexpr const char* kPortReportsError = " reports an error";
inline constexpr const char* kDeviceIsGone =
    " is gone (its device was removed from the host, or has failed for good)";

}  // namespace beeline
