// SPDX-License-Identifier: Apache-2.0
//
// Loads the plugins that the environment of this process names, as NCCL would: through the loader,
// with LD_LIBRARY_PATH. That runs their constructors, so it is done for the user's own environment
// on this host alone, and never for a recorded host nor for what another host has sent. Each is
// loaded in a process of its own: a constructor that dies or does not return is reported.
#pragma once

#include "plugin/checks/plugin_view.h"
#include "plugin/config/environ.h"

namespace beeline::doctor {

checks::PluginView load_plugins(const Environ& environ);

}  // namespace beeline::doctor
