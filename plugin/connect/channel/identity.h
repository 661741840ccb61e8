// SPDX-License-Identifier: Apache-2.0
//
// The identity by which other processes know this one, and the tokens of its listeners. Both are
// random numbers: no two processes of a job have the same identity, whatever hosts, containers or
// restarts are involved, and a token cannot be guessed.
#pragma once

#include <cstdint>
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

// The name of this process, with a fresh id.
Result<ProcessName> make_process_name();

Result<wire::Token> make_token();

}  // namespace beeline
