// SPDX-License-Identifier: Apache-2.0
#include "common/base/result.h"

#include <cstring>

namespace beeline {

const char* to_string(Errc code) noexcept {
  switch (code) {
    case Errc::kOk: return "ok";
    case Errc::kInvalid: return "invalid";
    case Errc::kNotFound: return "not found";
    case Errc::kDenied: return "denied";
    case Errc::kNoMemory: return "no memory";
    case Errc::kBusy: return "busy";
    case Errc::kUnsupported: return "unsupported";
    case Errc::kTimeout: return "timeout";
    case Errc::kPeerClosed: return "peer closed";
    case Errc::kProtocol: return "protocol violation";
    case Errc::kSystem: return "system";
    case Errc::kInternal: return "internal error";
  }
  return "unknown error";
}

std::string describe(const Error& error) {
  std::string text = error.what;
  if (error.sys_errno != 0) {
    char buffer[128];
    // The GNU strerror_r: it may leave `buffer` alone and return a constant.
    text.append(": ").append(strerror_r(error.sys_errno, buffer, sizeof buffer));
  }
  if (error.code != Errc::kSystem) text.append(" (").append(to_string(error.code)).append(")");
  return text;
}

}  // namespace beeline
