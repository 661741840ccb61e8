// SPDX-License-Identifier: Apache-2.0
//
// The registration cache with several threads. A gate holds registrations up, so that they overlap.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "plugin/memory/mr_cache.h"
#include "tests/support/catch.h"
#include "tests/support/must.h"
#include "tests/support/verbs_fake.h"

namespace beeline::test {
namespace {

constexpr std::uintptr_t kBase = 0x10000000;
constexpr std::size_t kPage = 4096;

MrRequest pages(std::size_t first, std::size_t count) {
  return {.address = reinterpret_cast<void*>(kBase + first * kPage), .length = count * kPage};
}

MrRef take(MrCache& cache, const MrRequest& request) {
  auto ref = cache.acquire(request);
  BL_MUST(ref.has_value());
  return *std::move(ref);
}

// Threads that pass() wait until it is opened.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await_somebody() {
    std::unique_lock lock(mutex_);
    BL_MUST(changed_.wait_for(lock, kPatience, [&] { return waiting_ > 0; }));
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

TEST_CASE("mr cache: a slow registration delays only requests for its range",
          "[component][memory]") {
  FakeVerbs fake;
  Gate gate;
  fake.on_register = [&](const FakeVerbs::Registration& asked) {
    if (asked.start == kBase) gate.pass();
    return 0;
  };
  MrCache cache(fake.api, nullptr);
  std::atomic<int> same{0};
  {
    MrRef slow;
    std::jthread maker([&] { slow = take(cache, pages(0, 8)); });
    gate.await_somebody();
    std::vector<std::jthread> waiters;
    for (std::size_t i = 0; i < 4; ++i) {
      waiters.emplace_back([&] {
        const MrRef ref = take(cache, pages(0, 8));
        if (ref.mr()->length == 8 * kPage) ++same;
      });
    }
    // Other ranges are not held up, whether they are registered already or not.
    const MrRef other = take(cache, pages(100, 1));
    CHECK(take(cache, pages(100, 1)).mr() == other.mr());
    CHECK(cache.stats().regions == 1);
    gate.open();
    waiters.clear();
    maker.join();
    CHECK(same == 4);
    CHECK(fake.registrations().size() == 2);
    CHECK(cache.stats().hits == 5);
  }
  CHECK(fake.live_mrs() == 0);
}

TEST_CASE("mr cache: a thread that waited for a failed registration makes its own",
          "[component][memory]") {
  FakeVerbs fake;
  Gate gate;
  std::atomic<int> tries{0};
  fake.on_register = [&](const FakeVerbs::Registration&) {
    if (tries.fetch_add(1) > 0) return 0;
    gate.pass();
    return ENOMEM;
  };
  MrCache cache(fake.api, nullptr);
  Errc first = Errc::kOk;
  bool second = false;
  {
    std::jthread maker([&] { first = cache.acquire(pages(0, 8)).error().code; });
    gate.await_somebody();
    std::jthread waiter([&] { second = cache.acquire(pages(0, 8)).has_value(); });
    gate.open();
  }
  CHECK(first == Errc::kNoMemory);
  CHECK(second);
  CHECK(fake.live_mrs() == 0);
  CHECK(cache.stats().regions == 0);
}

TEST_CASE("mr cache: a slow deregistration delays no other request", "[component][memory]") {
  FakeVerbs fake;
  Gate gate;
  std::atomic<bool> slow{true};
  fake.on_deregister = [&] {
    if (slow.exchange(false)) gate.pass();
  };
  MrCache cache(fake.api, nullptr);
  MrRef going = take(cache, pages(0, 8));
  {
    std::jthread giver([&] { going.reset(); });
    gate.await_somebody();
    // A registration that is being dropped is not a hit any more.
    const MrRef anew = take(cache, pages(0, 8));
    const MrRef other = take(cache, pages(50, 1));
    CHECK(fake.registrations().size() == 3);
    CHECK(fake.live_mrs() == 3);
    gate.open();
  }
  CHECK(fake.live_mrs() == 0);
}

TEST_CASE("mr cache: many threads on few ranges leave nothing behind", "[component][memory]") {
  FakeVerbs fake;
  fake.on_register = [](const FakeVerbs::Registration& asked) {
    // Some fail, so that waiting threads see both outcomes.
    return asked.length == 3 * kPage && asked.start % (2 * kPage) == 0 ? ENOMEM : 0;
  };
  MrCache cache(fake.api, nullptr);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::minstd_rand random(seed);
        std::vector<MrRef> held(4);
        for (int i = 0; i < 2000; ++i) {
          const MrRequest wanted = pages(random() % 8, 1 + random() % 4);
          auto ref = cache.acquire(wanted);
          if (!ref) continue;
          const auto start = reinterpret_cast<std::uintptr_t>(ref->mr()->addr);
          const auto asked = reinterpret_cast<std::uintptr_t>(wanted.address);
          if (start > asked || start + ref->mr()->length < asked + wanted.length) ++wrong;
          held[random() % held.size()] = *std::move(ref);
        }
      });
    }
  }
  CHECK(wrong == 0);
  CHECK(fake.live_mrs() == 0);
  const MrCacheStats stats = cache.stats();
  CHECK(stats.regions == 0);
  CHECK(stats.bytes == 0);
  CHECK(stats.misses == fake.registrations().size());
  CHECK(stats.failed > 0);
  CHECK(stats.hits > 0);
}

}  // namespace
}  // namespace beeline::test
