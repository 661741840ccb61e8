// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "tools/gpu_check/witness.h"

namespace beeline::gpu {
namespace {

bool is_on_softnic() { return std::getenv("SOFTNIC_FABRIC") != nullptr; }

// Puts this process on a softnic host, whose sysfs tree is next to those of the other hosts.
void enter_softnic_host(int rank) {
  const char* const root = std::getenv("BEELINE_SYSFS_ROOT");
  if (!is_on_softnic() || root == nullptr) return;
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

const char* to_string(Memory memory) noexcept {
  switch (memory) {
    case Memory::kHost: return "host";
    case Memory::kGpu: return "gpudirect";
    case Memory::kGpuFlushed: return "gpudirect+flush";
  }
  return "?";
}

Variables common_variables(const RunSettings& settings) {
  const std::string& loaded = settings.witness.empty() ? settings.plugin : settings.witness;
  Variables variables{
      {"NCCL_NET_PLUGIN", loaded.empty() ? "none" : loaded},
      {"NCCL_NET", settings.net},  // by name: falling back to another network is an error
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_P2P_DISABLE", "1"},
      {"NCCL_SHM_DISABLE", "1"},
      {"NCCL_MNNVL_ENABLE", "0"},  // there is no NVLink between machines here
      {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_RAS_ENABLE", "0"},
      // NCCL 2.27.3 to 2.29.7 do not use the plugin again after the last communicator.
      {"NCCL_NET_PLUGIN_REF_COUNT", "1"},
      // From 2.30 on, each communicator would also open softnic's devices with NCCL's own code, for
      // GPU-initiated networking.
      {"NCCL_GIN_ENABLE", "0"},
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "INIT,NET,ENV,TUNING"},
  };
  // Without this variable, NCCL's own InfiniBand code reads GID types from the machine's /sys,
  // which has no softnic devices, and fails. Entry 3 is RoCE v2 with an IPv4 address.
  if (settings.net == "IB" && is_on_softnic()) variables.emplace_back("NCCL_IB_GID_INDEX", "3");
  if (!settings.witness.empty()) variables.emplace_back(kWitnessedPlugin, settings.plugin);
  if (!settings.algo.empty()) variables.emplace_back("NCCL_ALGO", settings.algo);
  return variables;
}

Variables run_variables(const RunSettings& settings) {
  const bool is_direct = settings.memory != Memory::kHost;
  Variables variables{
      // softnic's devices are near no GPU, so GPUDirect is used with all of them or none.
      {"NCCL_NET_GDR_LEVEL", is_direct ? "SYS" : "LOC"},
      {"NCCL_NET_GDR_READ", is_direct ? "1" : "0"},
      {"NCCL_NET_FORCE_FLUSH", settings.memory == Memory::kGpuFlushed ? "1" : "0"},
  };
  if (!settings.proto.empty()) variables.emplace_back("NCCL_PROTO", settings.proto);
  return variables;
}

Variables rank_variables(const RunSettings& settings, int rank) {
  Variables variables{
      {"NCCL_HOSTID", fmt::format("gpu-check-{}", rank)},
      {"NCCL_DEBUG_FILE", log_file(settings, rank)},
  };
  if (!settings.witness.empty()) {
    variables.emplace_back(kWitnessFile, calls_file(settings, rank));
  }
  return variables;
}

void enter_environment(const RunSettings& settings, int rank) {
  for (const Variables& variables :
       {common_variables(settings), run_variables(settings), rank_variables(settings, rank)}) {
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
    if (is_set_by(run_variables(settings), name)) continue;
    if (is_set_by(rank_variables(settings, 0), name)) continue;
    found.emplace_back(name, text.substr(std::min(name.size() + 1, text.size())));
  }
  return found;
}

std::string log_file(const RunSettings& settings, int rank) {
  const char* const dash = settings.proto.empty() ? "" : "-";
  return fmt::format("{}/{}{}rank{}.log", settings.log_folder, settings.proto, dash, rank);
}

std::string calls_file(const RunSettings& settings, int rank) {
  return log_file(settings, rank) + ".calls";
}

}  // namespace beeline::gpu
