// SPDX-License-Identifier: Apache-2.0
//
// One thing that was found out about this machine, as data. The floors below return findings, and
// plugin/runtime writes them to the log; a tool that checks machines can read the same list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace beeline {

enum class Severity : std::uint8_t {
  kOk,       // as it should be; the log leaves it out
  kNote,     // worth knowing; may be intended
  kWarning,  // something is not used, or data moves more slowly than this machine allows
};
const char* to_string(Severity severity) noexcept;  // "warning"

struct Finding {
  std::string_view id;  // "port-not-active": a literal that scripts and documents may rely on
  Severity severity = Severity::kNote;
  std::string subject = {};              // "mlx5_0 port 1"; empty: this host or this process
  std::vector<std::string> others = {};  // what else it concerns: the NICs of a GPU
  std::string fact = {};                 // a sentence that names the subject, without a full stop
  std::string why = {};                  // why it matters, if the fact does not say so itself
  std::string fix = {};                  // what a person can do; empty: nothing
};

// "mlx5_0 port 1 is DOWN and not used. To fix it: check the cable and the switch (ibstat)".
std::string describe(const Finding& finding);

}  // namespace beeline
