// SPDX-License-Identifier: Apache-2.0
//
// The device scan when a library call or a device fails: which devices it leaves out, and what it
// logs.
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "tests/plugin/component/device_rig.h"
#include "tests/support/found.h"
#include "tests/support/skip.h"

namespace beeline::test {
namespace {

// softnic's devices with another transport type.
template <ibv_transport_type kTransport>
ibv_device** list_of_transport(int* count) {
  ibv_device** const list = softnic_api().get_device_list(count);
  for (int i = 0; list != nullptr && i < *count; ++i) list[i]->transport_type = kTransport;
  return list;
}

bool is_first(const ibv_context* context) {
  return std::string("softnic0") == context->device->name;
}

std::unique_ptr<DeviceTable> scan_with(const verbs::Api& api, const TestFabric& fabric) {
  TestFabric::choose_host("h0");
  return must(DeviceTable::scan(api, device_options(fabric)));
}

// softnic0 is left out by one warning, and softnic1 stays.
void must_be_left_out(const DeviceTable& table, const std::string& subject,
                      const std::string& text) {
  REQUIRE(table.devices().size() == 1);
  CHECK(table.devices()[0].ibdev == "softnic1");
  CHECK(table.contexts().size() == 1);
  const Found found(table.findings());
  INFO(found.all_text());
  CHECK(found.count(Severity::kWarning) == 1);
  CHECK(found.has("device-failed", Severity::kWarning, subject));
  CHECK(found.has(text));
}

TEST_CASE("scan: a device of an unknown transport is not used", "[component][device]") {
  const TestFabric fabric;
  verbs::Api api = softnic_api();
  api.get_device_list = list_of_transport<IBV_TRANSPORT_USNIC_UDP>;
  const auto table = scan_with(api, fabric);
  CHECK(table->devices().empty());
  const Found found(table->findings());
  CHECK(found.has("device-unsupported", Severity::kNote, "softnic0"));
  CHECK(found.count("is neither InfiniBand, RoCE nor iWARP and not used") == 2);
  CHECK(found.count(Severity::kWarning) == 0);  // the user cannot do anything about it
  CHECK_FALSE(table->has_warned_of_no_device());
}

TEST_CASE("scan: a device that cannot be queried is left out, and the others stay",
          "[component][device]") {
  const TestFabric fabric;
  verbs::Api api = softnic_api();
  api.query_device = [](ibv_context* context, ibv_device_attr* attr) {
    return is_first(context) ? EIO : softnic_api().query_device(context, attr);
  };
  must_be_left_out(*scan_with(api, fabric), "softnic0",
                   "softnic0 is not used: query the device: Input/output error");
}

TEST_CASE("scan: a port that cannot be queried is left out, and the others stay",
          "[component][device]") {
  const TestFabric fabric;
  verbs::Api api = softnic_api();
  api.open_device = [](ibv_device* device) {
    ibv_context* const context = softnic_api().open_device(device);
    if (context != nullptr && is_first(context)) {
      verbs_get_ctx(context)->query_port = [](ibv_context*, uint8_t, ibv_port_attr*, size_t) {
        return EIO;
      };
    }
    return context;
  };
  must_be_left_out(*scan_with(api, fabric), "softnic0 port 1",
                   "softnic0 port 1 is not used: query the port: Input/output error");
}

TEST_CASE("scan: a device list that cannot be read is an error", "[component][device]") {
  const TestFabric fabric;
  verbs::Api api = softnic_api();
  api.get_device_list = [](int*) -> ibv_device** {
    errno = ENOSYS;
    return nullptr;
  };
  const auto table = DeviceTable::scan(api, device_options(fabric));
  REQUIRE_FALSE(table);
  CHECK(table.error().code == Errc::kUnsupported);
  CHECK(table.error().sys_errno == ENOSYS);
}

TEST_CASE("scan: a failure of ibv_fork_init is a note, and the scan continues",
          "[component][device]") {
  const TestFabric fabric;
  verbs::Api api = softnic_api();
  api.fork_init = [] { return EINVAL; };
  const auto table = scan_with(api, fabric);
  CHECK(table->devices().size() == 2);
  const Found found(table->findings());
  CHECK(found.has("fork-init-failed", Severity::kNote, ""));
  CHECK(found.count("ibv_fork_init is refused (Invalid argument)") == 1);
  CHECK(found.count(Severity::kWarning) == 0);
}

constexpr rlim_t kLowBytes = rlim_t{64} << 10;

// Lowers the soft limit on locked memory, which applies to registrations.
class LowLimit {
 public:
  LowLimit() {
    BL_MUST(::getrlimit(RLIMIT_MEMLOCK, &before_) == 0);
    rlimit low = before_;
    low.rlim_cur = std::min(kLowBytes, before_.rlim_max);
    BL_MUST(::setrlimit(RLIMIT_MEMLOCK, &low) == 0);
  }
  LowLimit(const LowLimit&) = delete;
  LowLimit& operator=(const LowLimit&) = delete;
  ~LowLimit() { ::setrlimit(RLIMIT_MEMLOCK, &before_); }

  rlim_t hard_limit() const { return before_.rlim_max; }

 private:
  rlimit before_ = {};
};

TEST_CASE("scan: the limit on locked memory is raised as far as the process may",
          "[component][memlock]") {
  const LowLimit limit;
  if (limit.hard_limit() <= kLowBytes) skip_program("the hard limit on locked memory is 64 KiB");
  const TestFabric fabric;
  const auto table = scan(fabric);
  rlimit now = {};
  BL_MUST(::getrlimit(RLIMIT_MEMLOCK, &now) == 0);
  CHECK(now.rlim_cur == limit.hard_limit());
  const Found found(table->findings());
  CHECK(found.has("memlock-raised", Severity::kNote, ""));
  CHECK(found.count("raised the locked-memory limit of this process from 64 KiB to ") == 1);
}

}  // namespace
}  // namespace beeline::test
