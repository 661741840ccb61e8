// SPDX-License-Identifier: Apache-2.0
//
// Who this process is to others. The number is random, so that two processes of one job never share
// it, whatever hosts, containers or restarts are involved.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/result.h"
#include "plugin/wire/handle.h"

namespace beeline {

struct ProcessName {
  wire::ProcessId id{};
  std::string host;
  std::uint32_t pid = 0;

  std::string text() const;  // "h1 (pid 4711)"
};

// Of this process, with a fresh number.
Result<ProcessName> make_process_name();

Result<wire::Token> make_token();

}  // namespace beeline
