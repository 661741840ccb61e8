// SPDX-License-Identifier: Apache-2.0
//
// The text of a schedule from which tests make their own.
#pragma once

#include <string>

#include "tests/support/catch.h"

namespace beeline::simulation {

// A schedule without faults. Tests append lines to it.
inline std::string calm(const char* what = "") {
  return "run seed=1 hosts=2 nics=2 rails=2 queue_pairs=1 comms=2 most_bytes=65536 "
         "groups_at_once=4 pace_us=5000 poll_ms=20 gpu=0 standbys=0 give_up_ms=0 faults_ms=4000\n" +
         std::string(what);
}

// `text` with `to` in place of `from`, which has to be in it.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace beeline::simulation
