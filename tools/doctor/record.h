// SPDX-License-Identifier: Apache-2.0
//
// A record of a host: the files that the checks read, in one JSON document. It is a tree of
// objects; a text is the content of a file. Other things are objects with one member whose name
// begins with
// "@": "@link" with the target of a symbolic link, "@hex" with the bytes of a file that is no text,
// "@error" with the reason why a file could not be read.
#pragma once

#include <string>

#include "plugin/checks/plugin_view.h"
#include "plugin/checks/port_counters.h"
#include "plugin/checks/tree.h"
#include "plugin/checks/verbs_view.h"
#include "plugin/config/environ.h"

namespace beeline::doctor {

// Below it are the counters of the second reading.
inline constexpr const char* kSecondReading = "/later";
// The variables of the environment that matter, one in a line.
inline constexpr const char* kEnvironment = "/environment";
// The devices as libibverbs shows them (verbs_view.h).
inline constexpr const char* kVerbs = "/verbs";
// The plugins that NCCL would load (plugin_view.h).
inline constexpr const char* kPlugins = "/plugins";

// Without addresses, those of the network are replaced by others that are in the same relations:
// equal ones stay equal, a subnet stays a subnet.
std::string record_of(const checks::Tree& tree, const Environ& environ,
                      const checks::VerbsView& verbs, const checks::PluginView& plugins,
                      const checks::CounterSamples& counters, bool with_addresses);

}  // namespace beeline::doctor
