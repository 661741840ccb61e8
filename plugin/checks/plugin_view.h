// SPDX-License-Identifier: Apache-2.0
//
// The result of loading the plugins that NCCL would load on this host. Loading a plugin runs its
// code, so only the doctor of the host itself does it, and a record keeps the result.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace beeline::checks {

// A plugin that NCCL tries, in its order.
struct PluginTry {
  std::string name = {};   // as NCCL_NET_PLUGIN has it
  std::string error = {};  // why it cannot be loaded; empty: it can
  std::string net = {};    // "Beeline": the name of its network
  std::string file = {};   // that the loader has found
  bool is_other = false;   // that file is not the plugin that was installed with this program
};

struct PluginView {
  std::vector<PluginTry> tries = {};
  std::string own_folder = {};  // with the plugin that was installed with this program
  bool is_searched = false;     // the loader searches that folder without LD_LIBRARY_PATH
};

// The lines of a record, and back. Nothing if there are none. Without paths, these are replaced.
std::string to_text(const PluginView& view, bool with_paths);
std::optional<PluginView> parse_plugins(const std::string& text);

}  // namespace beeline::checks
