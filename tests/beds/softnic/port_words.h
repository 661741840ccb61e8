// SPDX-License-Identifier: Apache-2.0
//
// Parses commands in a test.
#pragma once

#include <string>

#include "softnic/fabric/port_command.h"
#include "tests/support/catch.h"

namespace softnic::test {

inline PortCommand must_parse(const std::string& text) {
  const auto command = parse_port_command(text);
  if (!command) FAIL(command.error().text);
  return *command;
}

inline std::string complaint(const std::string& text) {
  const auto command = parse_port_command(text);
  return command ? "(accepted)" : command.error().text;
}

}  // namespace softnic::test
