// SPDX-License-Identifier: Apache-2.0
//
// Thread domains: how many are created, their protection domain, and refusals of the device.
#include "plugin/device/thread_domain.h"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "plugin/device/device.h"
#include "tests/support/catch.h"
#include "tests/support/verbs_fake.h"

namespace beeline {
namespace {

using test::FakeVerbs;
using Names = std::vector<std::string>;

struct Opened {
  FakeVerbs fake;
  ibv_context raw = {};
  ibv_pd pd = {};
  DeviceContext context{verbs::Context(fake.api, &raw), "fake0", 0};

  ThreadDomain make(int most = 8) { return ThreadDomain::make(context, &pd, most); }
};

TEST_CASE("thread domain: is created in the memory's protection domain, and freed last",
          "[unit][device]") {
  Opened device;
  {
    const ThreadDomain made = device.make();
    REQUIRE(made);
    CHECK(made.pd() == &device.fake.parent_domain);
    CHECK(device.fake.parent_domain_wish.pd == &device.pd);
    CHECK(device.fake.parent_domain_wish.td == &device.fake.td);
    CHECK(device.fake.parent_domain_wish.comp_mask == 0);
  }
  CHECK(device.fake.domains_freed == Names{"parent domain", "thread domain"});
  CHECK(device.context.thread_domains() == 0);
}

TEST_CASE("thread domain: a device that has none, or no more, returns none", "[unit][device]") {
  const int refusal = GENERATE(EOPNOTSUPP, ENOSYS, EINVAL, ENOMEM, ENOSPC, 0);
  Opened device;
  device.fake.td_error = refusal;
  const ThreadDomain made = device.make();
  CHECK_FALSE(made);
  CHECK(made.pd() == nullptr);
  CHECK(device.fake.domains_made == 0);
  CHECK(device.context.thread_domains() == 0);
}

TEST_CASE("thread domain: is freed again if there is no parent domain", "[unit][device]") {
  const int refusal = GENERATE(EOPNOTSUPP, EINVAL, ENOMEM);
  Opened device;
  device.fake.parent_domain_error = refusal;
  CHECK_FALSE(device.make());
  CHECK(device.fake.domains_made == 1);
  CHECK(device.fake.domains_freed == Names{"thread domain"});
  CHECK(device.context.thread_domains() == 0);
}

TEST_CASE("thread domain: no more than allowed are created, and a freed one makes room",
          "[unit][device]") {
  Opened device;
  CHECK_FALSE(device.make(0));
  CHECK(device.fake.domains_made == 0);
  ThreadDomain first = device.make(2);
  const ThreadDomain second = device.make(2);
  CHECK_FALSE(device.make(2));
  CHECK(device.context.thread_domains() == 2);
  first = ThreadDomain();
  CHECK(device.context.thread_domains() == 1);
  CHECK(device.make(2));
}

TEST_CASE("thread domain: assignment frees the old objects in order", "[unit][device]") {
  Opened device;
  ThreadDomain one = device.make();
  ThreadDomain other = device.make();
  one = std::move(other);
  CHECK(device.fake.domains_freed == Names{"parent domain", "thread domain"});
  CHECK(one);
  CHECK(device.context.thread_domains() == 1);
}

}  // namespace
}  // namespace beeline
