// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/options.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/launchers.h"
#include "common/base/version.h"
#include "plugin/recovery/guarded.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "plugin/wire/limits.h"

namespace beeline {
namespace {

AddressFamily gid_family(IpFamily family) noexcept {
  switch (family) {
    case IpFamily::kAny: return AddressFamily::kUnset;
    case IpFamily::kIpv4: return AddressFamily::kIpv4;
    case IpFamily::kIpv6: return AddressFamily::kIpv6;
  }
  return AddressFamily::kUnset;
}

// NCCL does not distinguish host bridges: NODE here is PHB in NCCL.
topology::Distance distance_of(GdrLevel level) noexcept {
  switch (level) {
    case GdrLevel::kLoc: return topology::Distance::kLoc;
    case GdrLevel::kPix: return topology::Distance::kPix;
    case GdrLevel::kPxb: return topology::Distance::kPxb;
    case GdrLevel::kPhb: return topology::Distance::kNode;
    case GdrLevel::kSys: return topology::Distance::kSys;
  }
  return topology::Distance::kPxb;
}

const char* socket_family(IpFamily family) noexcept {
  switch (family) {
    case IpFamily::kAny: return "";
    case IpFamily::kIpv4: return "AF_INET";
    case IpFamily::kIpv6: return "AF_INET6";
  }
  return "";
}

std::chrono::milliseconds milliseconds(std::int64_t ns) noexcept {
  return std::chrono::milliseconds(ns / kNsPerMs);
}

GidPolicy ib_gid_policy(const Config& config) {
  return {.fixed_index = config.gid_index_is_for_roce ? -1 : static_cast<int>(config.gid_index),
          .flid_index = static_cast<int>(config.flid_gid_index)};
}

GidPolicy roce_gid_policy(const Config& config) {
  GidPolicy policy = {.fixed_index = static_cast<int>(config.gid_index),
                      .roce_version = static_cast<int>(config.roce_version),
                      .family = gid_family(config.addr_family),
                      .range = std::nullopt};
  // check_settings() warns of a range that is not understood.
  if (const auto range = parse_gid_range(config.addr_range)) policy.range = *range;
  return policy;
}

PkeyChoice pkey_choice(const Config& config) noexcept {
  return {.index = config.pkey, .value = config.pkey_value};
}

// As in BEELINE_TIMEOUT.
int device_timeout(const Config& config) noexcept {
  if (config.timeout != 0) return static_cast<int>(config.timeout);
  return config.recovery ? 14 : 20;
}

QpOptions qp_options(const Config& config) {
  QpOptions options;
  options.timeout = static_cast<std::uint8_t>(device_timeout(config));
  options.retry_count = static_cast<std::uint8_t>(config.retry_cnt);
  options.service_level = static_cast<int>(config.sl);
  options.traffic_class = static_cast<int>(config.tc);
  options.pkey = pkey_choice(config);
  options.gid = roce_gid_policy(config);
  options.ib_gid = ib_gid_policy(config);
  options.ece = config.ece;
  options.thread_domains = static_cast<int>(config.thread_domains);
  options.qps_per_rail = std::min(config.qps_per_connection, int{wire::kMaxPaths});
  options.cm_requested = config.cm == CmChoice::kRdmacm;
  return options;
}

// A device may wait up to four times the timeout that was set, for the first attempt and for each
// retry.
std::int64_t longest_device_wait_ns(const Config& config) noexcept {
  const std::int64_t one_try_ns = std::int64_t{4096} << device_timeout(config);
  return 4 * one_try_ns * (config.retry_cnt + 1) + 10 * kNsPerSec;
}

template <class End>
CommPlans plans(const Config& config) {
  CommPlans plans;
  for (std::size_t i = 0; i < plans.by_paths.size(); ++i) {
    CommPlan& plan = plans.by_paths[i];
    plan = End::plan(i + 1);
    plan.comm_bytes = sizeof(Guarded<End>);
    if (config.use_inline == false) plan.inline_bytes = 0;
  }
  return plans;
}

}  // namespace

DeviceOptions device_options(const Config& config) {
  return {.hca_filter = config.hca,
          .sysfs_root = config.sysfs_root,
          .adaptive_routing = config.adaptive_routing,
          .relaxed_ordering = config.relaxed_ordering};
}

StatsPage::Options stats_options(const Config& config) {
  const std::optional<LaunchedAs> launched = launched_as();
  return {.directory = config.stats_dir,
          .build = kBuild,
          .shown = config.stats,
          .rank = launched ? std::optional(launched->rank) : std::nullopt,
          .ranks = launched ? std::optional(launched->ranks) : std::nullopt,
          .job = config.job.empty() ? launched_job() : config.job};
}

ControlOptions control_options(const Config& config) {
  ControlOptions options = {.interface = config.socket_ifname,
                            .family = socket_family(config.socket_family),
                            .ports = config.listen_ports,
                            .connect_timeout = milliseconds(config.connect_timeout_ns),
                            .half_open_timeout = milliseconds(config.half_open_timeout_ns),
                            .peer_timeout = milliseconds(config.peer_timeout_ns),
                            .outage_timeout = milliseconds(config.give_up_after_ns),
                            .resume_channels = config.recovery,
                            .wait_warning = std::chrono::nanoseconds(config.stall_warn_ns),
                            .sender = plans<SendComm>(config),
                            .receiver = plans<RecvComm>(config),
                            .qp = qp_options(config)};
  return options;
}

gdr::Options gdr_options(const Config& config) {
  return {.cuda_lib = config.cuda_lib,
          .sysfs_root = config.sysfs_root,
          .dmabuf = config.dmabuf_enable,
          .proof = config.gdr_proof,
          .always_flush = config.net_force_flush,
          .never_flush = config.gdr_flush_disable,
          .level = distance_of(config.net_gdr_level),
          .gid = roce_gid_policy(config),
          .pkey = pkey_choice(config)};
}

CommOptions comm_options(const Config& config) {
  return {.routed_above = static_cast<std::size_t>(config.ar_threshold),
          .stall_ns = config.stall_timeout_ns != 0 ? config.stall_timeout_ns
                                                   : longest_device_wait_ns(config),
          .give_up_ns = config.give_up_after_ns,
          .device_ns = config.device_wait_ns,
          .peer_ns = config.peer_timeout_ns,
          .ask_after_ns = config.stall_warn_ns,
          .early_done = config.early_done,
          .split_on_qps = config.split_data_on_qps,
          .gid = roce_gid_policy(config),
          .pkey = pkey_choice(config)};
}

}  // namespace beeline
