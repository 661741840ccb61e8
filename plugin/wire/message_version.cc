// SPDX-License-Identifier: Apache-2.0
#include "plugin/wire/message_version.h"

#include "common/base/version.h"

namespace beeline::wire {
namespace {

// A name for the builds that speak these versions, such as " (Beeline 0.1)", or nothing.
std::string name_of(VersionRange theirs) {
  if (theirs.least > kOurVersions.most) return " (a newer Beeline)";
  return theirs.most == 1 ? " (Beeline 0.1)" : "";
}

}  // namespace

std::string numbers(VersionRange range) {
  const std::string least = std::to_string(range.least);
  return range.least == range.most ? least : least + "-" + std::to_string(range.most);
}

std::string text(VersionRange range) {
  return (range.least == range.most ? "version " : "versions ") + numbers(range);
}

std::string version_mismatch(VersionRange theirs, VersionRange ours) {
  return "the peer speaks " + text(theirs) + " of the protocol" + name_of(theirs) + ", this host " +
         text(ours) + " (Beeline " + kBuild + "): use the same build of Beeline on all hosts";
}

}  // namespace beeline::wire
