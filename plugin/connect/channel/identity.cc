// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/identity.h"

#include <sys/random.h>
#include <unistd.h>

#include "common/base/host.h"

namespace beeline {
namespace {

Result<std::array<std::uint8_t, 16>> random_bytes() {
  std::array<std::uint8_t, 16> bytes{};
  // The kernel never returns a part of a request for up to 256 bytes.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail_errno("get random bytes");
  }
  return bytes;
}

}  // namespace

std::string ProcessName::text() const { return host + " (pid " + std::to_string(pid) + ")"; }

Result<ProcessName> make_process_name() {
  ProcessName name;
  name.id = BL_TRY(random_bytes());
  name.host = host_name();
  name.pid = static_cast<std::uint32_t>(::getpid());
  return name;
}

Result<wire::Token> make_token() { return random_bytes(); }

}  // namespace beeline
