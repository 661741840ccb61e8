// SPDX-License-Identifier: Apache-2.0
//
// See environment.h.
#include "tests/gpu/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace beeline::gpu {
namespace {

// A host of softnic is chosen by name, and its sysfs tree stands beside those of the others.
void enter_softnic_host(int rank) {
  const char* const root = std::getenv("BEELINE_SYSFS_ROOT");
  if (std::getenv("SOFTNIC_FABRIC") == nullptr || root == nullptr) return;
  const std::string host = fmt::format("h{}", rank % 2);
  const std::filesystem::path mine = std::filesystem::path(root).parent_path() / host;
  std::error_code error;
  if (!std::filesystem::is_directory(mine, error)) return;
  ::setenv("SOFTNIC_HOST", host.c_str(), 1);
  ::setenv("BEELINE_SYSFS_ROOT", mine.c_str(), 1);
}

bool is_set_by(const Variables& variables, std::string_view name) {
  return std::any_of(variables.begin(), variables.end(),
                     [&](const auto& variable) { return variable.first == name; });
}

}  // namespace

Variables common_variables(const RunSettings& settings) {
  return {
      {"NCCL_NET_PLUGIN", settings.plugin.empty() ? "none" : settings.plugin},
      {"NCCL_NET", settings.net},  // by name: falling back to another network is an error
      {"NCCL_ALGO", settings.algo},
      {"NCCL_PROTO", settings.proto},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_P2P_DISABLE", "1"},
      {"NCCL_SHM_DISABLE", "1"},
      {"NCCL_MNNVL_ENABLE", "0"},  // one GPU is no NVLink domain of several machines
      {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_RAS_ENABLE", "0"},
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "INIT,NET,ENV,TUNING"},
  };
}

Variables rank_variables(const RunSettings& settings, int rank) {
  return {
      {"NCCL_HOSTID", fmt::format("gpu-check-{}", rank)},
      {"NCCL_DEBUG_FILE", log_file(settings, rank)},
  };
}

void enter_environment(const RunSettings& settings, int rank) {
  for (const Variables& variables : {common_variables(settings), rank_variables(settings, rank)}) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  enter_softnic_host(rank);
}

Variables inherited_variables(const RunSettings& settings) {
  Variables found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("NCCL_") && !text.starts_with("BEELINE_")) continue;
    const std::string_view name = text.substr(0, text.find('='));
    if (is_set_by(common_variables(settings), name)) continue;
    if (is_set_by(rank_variables(settings, 0), name)) continue;
    found.emplace_back(name, text.substr(std::min(name.size() + 1, text.size())));
  }
  return found;
}

std::string log_file(const RunSettings& settings, int rank) {
  return fmt::format("{}/{}-rank{}.log", settings.log_folder, settings.proto, rank);
}

}  // namespace beeline::gpu
