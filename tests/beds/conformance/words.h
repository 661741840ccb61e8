// SPDX-License-Identifier: Apache-2.0
// Converts results of verbs to text, because outcomes are compared as text.
#pragma once

#include <infiniband/verbs.h>

#include <initializer_list>
#include <string>

namespace conformance {

std::string word(ibv_wc_status status);
std::string word(ibv_wc_opcode opcode);
std::string word(ibv_qp_state state);
std::string word(ibv_event_type type);

// For a call that returns an errno: "accepted", "refused EINVAL". If a provider returns a negative
// errno: "refused -EINVAL".
std::string verdict(int answer);
// For a call that returns an object, or -1, and sets errno.
std::string verdict_of_errno(bool made);

// "yes" if all checks hold; otherwise the names of those that do not.
struct Check {
  bool holds;
  const char* otherwise;
};
std::string all_of(const char* yes, std::initializer_list<Check> checks);

}  // namespace conformance
