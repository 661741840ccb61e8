// SPDX-License-Identifier: Apache-2.0
//
// A process that has reached a limit of descriptors or file sizes gets an error, with an errno, and
// does no harm to its fabric.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "tests/beds/softnic/fabric_dir.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

// Runs `work` in a child process with a limit.
template <class Work>
void limited(int resource, rlim_t most, const Work& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit limit{most, most};
    _exit(setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 && work() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

bool has_no_devices(int error) {
  errno = 0;
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list != nullptr) ibv_free_device_list(list);
  return list == nullptr && errno == error;
}

}  // namespace

TEST_CASE("fabric_limits: a process without free descriptors does not remove a live fabric",
          "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  const auto first_free = static_cast<rlim_t>(dup(0));
  close(static_cast<int>(first_free));
  for (rlim_t left = 0; left < 12; ++left) {  // some numbers above the first may be in use
    INFO(left << " descriptors");
    limited(RLIMIT_NOFILE, first_free + left,
            [&] { return !softnic::clean_up_fabric(fabric.name()); });
    CHECK(softnic::Fabric::open(fabric.name()));
  }
}

TEST_CASE("fabric_limits: a limit on file sizes causes an error and no signal",
          "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  limited(RLIMIT_FSIZE, 1 << 16, [] { return has_no_devices(EFBIG); });
  const std::string name = TestFabric::fresh_name();
  limited(RLIMIT_FSIZE, 1 << 16, [&] {
    const auto holder = softnic::Holder::hold(name, nullptr);
    return !holder && holder.error().text.find("File too large") != std::string::npos;
  });
  CHECK(!exists(dir_of(name)));
}

TEST_CASE("fabric_limits: errno says why there are no devices", "[softnic][fabric]") {
  {
    const TestFabric fabric;
    TestFabric::choose_host("h9");
    CHECK(has_no_devices(EINVAL));
  }
  setenv("SOFTNIC_FABRIC", TestFabric::fresh_name().c_str(), 1);
  CHECK(has_no_devices(ENOSYS));
  unsetenv("SOFTNIC_FABRIC");
}
