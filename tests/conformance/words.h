// SPDX-License-Identifier: Apache-2.0
// Outcomes are compared as text, so everything that verbs answer has one word here.
#pragma once

#include <infiniband/verbs.h>

#include <initializer_list>
#include <string>

namespace conformance {

std::string word(ibv_wc_status status);
std::string word(ibv_wc_opcode opcode);
std::string word(ibv_qp_state state);
std::string word(ibv_event_type type);

// Of a call that answers with an errno: "accepted", "refused EINVAL". A provider that answers with
// the negative of one gets "refused -EINVAL".
std::string verdict(int answer);
// Of a call that makes something, or of one that answers -1; errno says why not.
std::string verdict_of_errno(bool made);

// "yes" says that all is well; otherwise the words of what is not.
struct Check {
  bool holds;
  const char* otherwise;
};
std::string all_of(const char* yes, std::initializer_list<Check> checks);

}  // namespace conformance
