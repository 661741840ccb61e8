// SPDX-License-Identifier: Apache-2.0
//
// The checks at init take their facts from the table of devices. The checks themselves are tested
// with whole hosts in tests/tools/doctor.
#include "plugin/runtime/host_checks.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/device/memlock.h"
#include "tests/support/catch.h"
#include "tests/support/found.h"

namespace beeline {
namespace {

GidEntry entry(std::uint16_t index, GidType type, const char* ipv4_or_local) {
  GidEntry gid = {.index = index, .type = type};
  if (std::string(ipv4_or_local) == "local") {
    gid.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 7};
  } else {
    gid.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, 2};
  }
  return gid;
}

std::vector<Device> one_roce_port(std::vector<GidEntry> gids) {
  std::vector<Device> devices(1);
  devices[0].ibdev = "mlx5_0";
  devices[0].facts.gids = std::move(gids);
  return devices;
}

test::Found found_on(const std::vector<Device>& devices,
                     const std::vector<std::string_view>& variables = {}) {
  return test::Found(check_host(devices, Environ(variables), "/nowhere"));
}

TEST_CASE("host checks: a port with a routable address is as it should be", "[unit][runtime]") {
  const auto found = found_on(
      one_roce_port({entry(0, GidType::kRoceV1, "local"), entry(3, GidType::kRoceV2, "10.0.1.2")}));
  INFO(found.all_text());
  CHECK_FALSE(found.has("mlx5_0"));
}

TEST_CASE("host checks: addresses of the table of devices are judged", "[unit][runtime]") {
  const auto local = found_on(one_roce_port({entry(1, GidType::kRoceV2, "local")}));
  CHECK(local.has("gid-only-link-local", Severity::kWarning, "mlx5_0 port 1"));
  const auto old = found_on(one_roce_port({entry(2, GidType::kRoceV1, "10.0.1.2")}));
  CHECK(old.has("gid-only-v1", Severity::kWarning, "mlx5_0 port 1"));
  CHECK(found_on(one_roce_port({})).has("gid-missing", Severity::kFailure, "mlx5_0 port 1"));
}

TEST_CASE("host checks: an index that the port cannot use, with those that it can",
          "[unit][runtime]") {
  const auto devices = one_roce_port(
      {entry(2, GidType::kRoceV1, "10.0.1.2"), entry(3, GidType::kRoceV2, "10.0.1.2")});
  const auto found = found_on(devices, {"NCCL_IB_GID_INDEX=2"});
  INFO(found.all_text());
  CHECK(found.has("gid-index-unusable", Severity::kFailure, "mlx5_0 port 1"));
  CHECK(found.has("RoCE v1 (10.0.1.2); usable: 3 (10.0.1.2)"));
  CHECK(found.has("To fix it: unset NCCL_IB_GID_INDEX; "));
  CHECK_FALSE(found_on(devices, {"NCCL_IB_GID_INDEX=3"}).has("gid-index"));
}

TEST_CASE("host checks: iWARP and InfiniBand ports need no RoCE address", "[unit][runtime]") {
  auto devices = one_roce_port({});
  devices[0].transport = Transport::kIwarp;
  CHECK_FALSE(found_on(devices).has("gid-missing"));
  devices[0].transport = Transport::kInfiniBand;
  devices[0].link_layer = LinkLayer::kInfiniBand;
  CHECK_FALSE(found_on(devices).has("gid-missing"));
}

TEST_CASE("host checks: a DSCP in place of a traffic class", "[unit][runtime]") {
  const auto found =
      found_on(one_roce_port({entry(3, GidType::kRoceV2, "10.0.1.2")}), {"NCCL_IB_TC=26"});
  CHECK(found.has("traffic-class-is-dscp", Severity::kWarning, "NCCL_IB_TC"));
  CHECK(found.has("export NCCL_IB_TC=104"));
}

// An ordinary user's limit does not apply to devices that lock nothing.
TEST_CASE("host checks: a low limit on locked memory is left to the registration that fails",
          "[unit][runtime]") {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit low = {.rlim_cur = 8 << 20, .rlim_max = 8 << 20};
    const bool is_limited =
        ::setrlimit(RLIMIT_MEMLOCK, &low) == 0 && (::geteuid() != 0 || ::setuid(65534) == 0);
    const MemlockFacts facts = read_memlock();
    if (!is_limited || facts.can_exceed || facts.hard_bytes != low.rlim_max) ::_exit(2);
    ::_exit(found_on(one_roce_port({})).has("of memory") ? 1 : 0);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace
}  // namespace beeline
