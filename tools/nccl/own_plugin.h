// SPDX-License-Identifier: Apache-2.0
//
// The plugin that was installed, or built, together with this program.
#pragma once

#include <filesystem>

#include "common/base/problem.h"

namespace beeline::nccl {

inline constexpr const char* kOwnPluginFile = "libnccl-net-beeline.so";

Outcome<std::filesystem::path> own_plugin_folder();

// Whether the loader searches the folder without LD_LIBRARY_PATH. Only the folders that it always
// searches count, so the answer is the same on all nodes.
bool is_always_searched(const std::filesystem::path& folder);

}  // namespace beeline::nccl
