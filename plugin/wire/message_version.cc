// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/message_version.h"

namespace beeline::wire {

std::string text(VersionRange range) {
  const std::string least = std::to_string(range.least);
  if (range.least == range.most) return "version " + least;
  return "versions " + least + "-" + std::to_string(range.most);
}

std::string version_mismatch(VersionRange theirs, VersionRange ours) {
  return "the peer speaks " + text(theirs) + " of the protocol, this host " + text(ours) +
         ": use the same version of Beeline on all hosts";
}

}  // namespace beeline::wire
