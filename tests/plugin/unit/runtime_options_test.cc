// SPDX-License-Identifier: Apache-2.0
//
// The conversion of the configuration into the options of each folder of the plugin.
#include "plugin/runtime/options.h"

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

Config config_of(const std::vector<std::string_view>& assignments) {
  return load_config(Environ(assignments)).config;
}

TEST_CASE("options: adaptive routing and relaxed ordering keep their three values",
          "[unit][runtime]") {
  const DeviceOptions automatic = device_options(config_of({}));
  CHECK(automatic.adaptive_routing == std::nullopt);
  CHECK(automatic.relaxed_ordering == std::nullopt);
  const DeviceOptions set =
      device_options(config_of({"NCCL_IB_ADAPTIVE_ROUTING=1", "NCCL_IB_PCI_RELAXED_ORDERING=0"}));
  CHECK(set.adaptive_routing == true);
  CHECK(set.relaxed_ordering == false);
}

TEST_CASE("options: processes of one job have its name from their launcher", "[unit][runtime]") {
  const auto job_with = [](const std::map<const char*, const char*>& variables,
                           const std::vector<std::string_view>& assignments = {}) {
    for (const char* name :
         {"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "MASTER_ADDR", "MASTER_PORT"})
      ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    return stats_options(config_of(assignments)).job;
  };
  CHECK(job_with({{"SLURM_JOB_ID", "48213"}, {"SLURM_STEP_ID", "0"}}) == "48213.0");
  CHECK(job_with({{"SLURM_JOB_ID", "48213"}, {"MASTER_ADDR", "n7"}, {"MASTER_PORT", "29500"}}) ==
        "48213 n7:29500");
  CHECK(job_with({{"PMIX_NAMESPACE", "prterun-n7-99@1"}}) == "prterun-n7-99@1");
  CHECK(job_with({{"SLURM_JOB_ID", "48213"}}, {"BEELINE_JOB=mine"}) == "mine");
  CHECK(job_with({}).empty());
}

TEST_CASE("options: GIDs and sockets have separate address families", "[unit][runtime]") {
  const ControlOptions any = control_options(config_of({}));
  CHECK(any.qp.gid.family == AddressFamily::kUnset);
  CHECK(any.family.empty());
  const ControlOptions four =
      control_options(config_of({"NCCL_IB_ADDR_FAMILY=AF_INET", "NCCL_SOCKET_FAMILY=AF_INET6"}));
  CHECK(four.qp.gid.family == AddressFamily::kIpv4);
  CHECK(four.family == "AF_INET6");
  const ControlOptions six =
      control_options(config_of({"NCCL_IB_ADDR_FAMILY=AF_INET6", "NCCL_SOCKET_FAMILY=AF_INET"}));
  CHECK(six.qp.gid.family == AddressFamily::kIpv6);
  CHECK(six.family == "AF_INET");
}

TEST_CASE("options: NCCL's GID index applies to RoCE, the plugin's own to InfiniBand too",
          "[unit][runtime]") {
  const ControlOptions inherited = control_options(config_of({"NCCL_IB_GID_INDEX=3"}));
  CHECK(inherited.qp.gid.fixed_index == 3);
  CHECK(inherited.qp.ib_gid.fixed_index == -1);
  CHECK(inherited.qp.ib_gid.flid_index == 1);
  const ControlOptions ours = control_options(config_of(
      {"BEELINE_GID_INDEX=2", "NCCL_IB_GID_INDEX=3", "NCCL_IB_ROUTABLE_FLID_GID_INDEX=5"}));
  CHECK(ours.qp.gid.fixed_index == 2);
  CHECK(ours.qp.ib_gid.fixed_index == 2);
  CHECK(ours.qp.ib_gid.flid_index == 5);
}

TEST_CASE("options: an invalid address range is not applied", "[unit][runtime]") {
  const ControlOptions good = control_options(config_of({"NCCL_IB_ADDR_RANGE=10.1.0.0/16"}));
  REQUIRE(good.qp.gid.range);
  CHECK(good.qp.gid.range->prefix == 96 + 16);
  CHECK_FALSE(control_options(config_of({"NCCL_IB_ADDR_RANGE=10.1.0.0/99"})).qp.gid.range);
}

TEST_CASE("options: nothing is sent inline where that is turned off", "[unit][runtime]") {
  CHECK(control_options(config_of({})).receiver.of(1).inline_bytes > 0);
  const ControlOptions off = control_options(config_of({"NCCL_IB_USE_INLINE=0"}));
  for (std::size_t paths = 1; paths <= wire::kMaxRails; ++paths) {
    CHECK(off.sender.of(paths).inline_bytes == 0);
    CHECK(off.receiver.of(paths).inline_bytes == 0);
  }
}

TEST_CASE("options: NCCL's numbers of queue pairs are honored, up to eight", "[unit][runtime]") {
  CHECK(control_options(config_of({})).qp.qps_per_rail == 1);
  CHECK_FALSE(comm_options(config_of({})).split_on_qps);
  const Config config = config_of({"NCCL_IB_QPS_PER_CONNECTION=4", "NCCL_IB_SPLIT_DATA_ON_QPS=1"});
  CHECK(control_options(config).qp.qps_per_rail == 4);
  CHECK(comm_options(config).split_on_qps);
  CHECK(control_options(config_of({"NCCL_IB_QPS_PER_CONNECTION=128"})).qp.qps_per_rail == 8);
}

TEST_CASE("options: loopback uses the partition of the connections", "[unit][runtime]") {
  CHECK(comm_options(config_of({})).pkey.index == -1);
  CHECK(gdr_options(config_of({})).pkey.value == -1);
  const Config config = config_of({"BEELINE_PKEY=3", "NCCL_IB_PKEY_VALUE=0x8001"});
  for (const PkeyChoice& pkey :
       {control_options(config).qp.pkey, comm_options(config).pkey, gdr_options(config).pkey}) {
    CHECK(pkey.index == 3);
    CHECK(pkey.value == 0x8001);
  }
}

}  // namespace
}  // namespace beeline
