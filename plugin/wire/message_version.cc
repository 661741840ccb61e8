// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/message_version.h"

namespace beeline::wire {
namespace {

std::string range_text(VersionRange range) {
  const std::string least = std::to_string(range.least);
  if (range.least == range.most) return "version " + least;
  return "versions " + least + "-" + std::to_string(range.most);
}

}  // namespace

std::string version_mismatch(VersionRange theirs, VersionRange ours) {
  return "the peer speaks " + range_text(theirs) + " of the protocol, this host " +
         range_text(ours) + ": use the same version of Beeline on all hosts";
}

}  // namespace beeline::wire
