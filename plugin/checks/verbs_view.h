// SPDX-License-Identifier: Apache-2.0
//
// The devices as libibverbs shows them, which may be fewer than the kernel's: the library needs a
// user-space driver and a device file for each.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace beeline::checks {

struct VerbsDevice {
  std::string error = {};               // why it cannot be opened; empty: it can
  std::map<int, int> active_mtus = {};  // by port, in bytes
};

struct VerbsView {
  std::string error = {};  // why there is no list; empty: there is one
  std::map<std::string, VerbsDevice> devices = {};
};

// Opens and closes each device. `library`: of BEELINE_IBVERBS_LIB, or empty.
VerbsView read_verbs(const std::string& library);

// The lines of a record, and back. Nothing if there are none.
std::string to_text(const VerbsView& view);
std::optional<VerbsView> parse_verbs(const std::string& text);

}  // namespace beeline::checks
