// SPDX-License-Identifier: Apache-2.0
#include "tools/nccl/own_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace beeline::nccl {
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

Outcome<fs::path> own_plugin_folder() {
  std::error_code error;
  const fs::path above = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  const std::array candidates = {
      above / "lib", above / "lib64", above / "lib" / kDebianTriplet,
      above / "plugin" / "abi",  // in a build folder
  };
  for (const fs::path& folder : candidates) {
    if (fs::exists(folder / kOwnPluginFile, error)) return folder;
  }
  return fail(Problem(fmt::format(
      "{} is not in {}, nor in {} or {}: this program was installed or copied without the plugin. "
      "Install both, or set LD_LIBRARY_PATH to the plugin's folder",
      kOwnPluginFile, candidates[0].string(), candidates[1].string(), candidates[2].string())));
}

bool is_always_searched(const fs::path& folder) {
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

}  // namespace beeline::nccl
