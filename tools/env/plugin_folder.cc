// SPDX-License-Identifier: Apache-2.0
#include "tools/env/plugin_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace beeline::env {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr const char* kDebianTriplet = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* kDebianTriplet = "aarch64-linux-gnu";
#else
constexpr const char* kDebianTriplet = "";
#endif

}  // namespace

Outcome<fs::path> plugin_folder(const fs::path& program_folder) {
  const fs::path above = program_folder.parent_path();
  const std::array candidates = {
      above / "lib", above / "lib64", above / "lib" / kDebianTriplet,
      above / "plugin" / "abi",  // in a build folder
  };
  std::error_code error;
  for (const fs::path& folder : candidates) {
    if (fs::exists(folder / kPluginFile, error)) return folder;
  }
  return fail(Problem(fmt::format(
      "{} is not in {}, nor in {} or {}: this program was installed or copied without the plugin. "
      "Install both, or set "
      "LD_LIBRARY_PATH to the plugin's folder",
      kPluginFile, candidates[0].string(), candidates[1].string(), candidates[2].string())));
}

bool is_searched_anyway(const fs::path& folder) {
  const std::array searched = {
      fs::path("/lib"),
      fs::path("/usr/lib"),
      fs::path("/lib64"),
      fs::path("/usr/lib64"),
      fs::path("/lib") / kDebianTriplet,
      fs::path("/usr/lib") / kDebianTriplet,
  };
  return std::ranges::find(searched, folder) != searched.end();
}

}  // namespace beeline::env
