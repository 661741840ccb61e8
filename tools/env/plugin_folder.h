// SPDX-License-Identifier: Apache-2.0
//
// Where the plugin of this installation is.
#pragma once

#include <filesystem>
#include <string>

#include "common/base/problem.h"
#include "common/base/result.h"

namespace beeline::env {

inline constexpr const char* kPluginFile = "libnccl-net-beeline.so";

// The folder of the plugin that was installed, or built, together with the program in
// `program_folder`.
Outcome<std::filesystem::path> plugin_folder(const std::filesystem::path& program_folder);

// Whether the loader searches the folder without LD_LIBRARY_PATH. Only the folders that it always
// searches count, so the answer is the same on all nodes.
bool is_searched_anyway(const std::filesystem::path& folder);

}  // namespace beeline::env
