// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "plugin/config/config.h"
#include "plugin/config/nearest.h"

namespace beeline {
namespace {

constexpr std::string_view kTransportPrefix = "NCCL_IB_";

// Those of NCCL 2.13 to 2.31, and those that the user guide of 2.32 adds. docs/compatibility.md
// says which files were read.
constexpr std::array<std::string_view, 34> kWithoutEffect = {
    "NCCL_GIN_IB_OOO_OPT",
    "NCCL_GIN_IB_TC",
    "NCCL_IB_CUDA_SUPPORT",
    "NCCL_IB_DATA_DIRECT",
    "NCCL_IB_DEVICE_PCI_ORDER",
    "NCCL_IB_EVENT_BASED_LB",
    "NCCL_IB_EVENT_BASED_LB_REMOTE",
    "NCCL_IB_FIFO_TC",
    "NCCL_IB_MERGE_VFS",
    "NCCL_IB_MQP_RETRY_ALL",
    "NCCL_IB_MQP_RETRY_CNT",
    "NCCL_IB_MQP_RETRY_SLEEP_MSEC",
    "NCCL_IB_OOO_RQ",
    "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS",
    "NCCL_IB_QUERY_PORT_SPEED",
    "NCCL_IB_RAIL_POLICY",
    "NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME",
    "NCCL_IB_RESILIENCY_PORT_FAILOVER",
    "NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS",
    "NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX",
    "NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY",
    "NCCL_IB_RETURN_ASYNC_EVENTS",
    "NCCL_IB_SUBNET_AWARE_ROUTING",
    "NCCL_IB_SUBNET_PREFIX_LEN",
    "NCCL_IB_WARN_RAIL_LOCAL",
    "NCCL_IB_WQE_LATENCY_REPORT",
    "NCCL_IB_WQE_LATENCY_THRESHOLD_NS"};

bool is_one_of(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The names that begin with NCCL_IB_, without that, so that it does not count as similar.
std::vector<std::string_view> endings(const std::vector<std::string_view>& honored) {
  std::vector<std::string_view> all = honored;
  all.insert(all.end(), kWithoutEffect.begin(), kWithoutEffect.end());
  std::erase_if(all, [](std::string_view name) { return !name.starts_with(kTransportPrefix); });
  for (std::string_view& name : all) name.remove_prefix(kTransportPrefix.size());
  return all;
}

// The name that is meant: one that is similar, or the first that is longer ("GID", "GID_INDEX").
std::string_view meant_by(std::string_view ending, const std::vector<std::string_view>& known) {
  const std::string_view similar = nearest(ending, known);
  if (!similar.empty() || ending.empty()) return similar;
  const std::string beginning = std::string(ending) + "_";
  const auto longer = std::ranges::find_if(
      known, [&](std::string_view name) { return name.starts_with(beginning); });
  return longer == known.end() ? std::string_view() : *longer;
}

Finding unknown_variable(const std::string& variable,
                         const std::vector<std::string_view>& honored) {
  const std::string_view ending = std::string_view(variable).substr(kTransportPrefix.size());
  const std::string_view meant = meant_by(ending, endings(honored));
  const std::string name = std::string(kTransportPrefix) + std::string(meant);
  const bool is_typing_error = edits_between(ending, meant) == 1 && is_one_of(honored, name);
  return {.id = "setting-unknown",
          .severity = is_typing_error ? Severity::kWarning : Severity::kNote,
          .subject = variable,
          .fact = variable + " has no effect here, and NCCL is not known to have it" +
                  (meant.empty() ? "" : "; did you mean " + name + "?")};
}

}  // namespace

std::vector<Finding> find_nccl_variables(const Environ& environ,
                                         const std::vector<std::string_view>& honored) {
  std::vector<Finding> findings;
  std::string without_effect;
  for (const std::string_view name : kWithoutEffect) {
    if (environ.get(name))
      without_effect += (without_effect.empty() ? "" : ", ") + std::string(name);
  }
  if (!without_effect.empty()) {
    findings.push_back({.id = "settings-without-effect",
                        .fact = "set, and without effect here: " + without_effect});
  }
  for (const Environ::Variable& variable : environ.variables()) {
    const bool is_known = is_one_of(honored, variable.name) ||
                          std::ranges::find(kWithoutEffect, variable.name) != kWithoutEffect.end();
    if (is_known || !variable.name.starts_with(kTransportPrefix) || !environ.get(variable.name))
      continue;
    findings.push_back(unknown_variable(variable.name, honored));
  }
  return findings;
}

}  // namespace beeline
