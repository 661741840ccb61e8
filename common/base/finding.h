// SPDX-License-Identifier: Apache-2.0
//
// One thing that was found out about this machine, as data. The floors below return findings;
// plugin/runtime writes them to the log, and `beeline doctor` prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace beeline {

enum class Severity : std::uint8_t {
  kOk,       // as it should be; the log leaves it out
  kUnknown,  // could not be found out, for the reason that the fact gives; the log leaves it out
  kNote,     // worth knowing; may be intended
  kWarning,  // something is not used, or data moves more slowly than this machine allows
  kFailure,  // a job will not start, or will end with an error
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
  std::string command = {};              // the fix as a line for a shell; empty: there is none
  std::string source = {};               // the file that the fact is from; empty: none
};

// "mlx5_0 port 1 is DOWN and not used. To fix it: check the cable and the switch (ibstat)".
std::string describe(const Finding& finding);

}  // namespace beeline
