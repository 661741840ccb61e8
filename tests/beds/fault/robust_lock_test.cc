// SPDX-License-Identifier: Apache-2.0
//
// RobustLock: excludes living processes, and is taken over from dead ones.
#include "softnic/fabric/robust_lock.h"

#include <atomic>
#include <thread>

#include "tests/support/catch.h"

namespace softnic {
namespace {

const auto all_alive = [](uint32_t) { return true; };

TEST_CASE("robust_lock: two threads take turns", "[fault][softnic]") {
  RobustLock lock;
  constexpr int kRounds = 20'000;
  int counter = 0;
  const auto count_up = [&](uint32_t self) {
    for (int i = 0; i < kRounds; ++i) {
      lock.lock(self, all_alive);
      ++counter;
      lock.unlock();
    }
  };
  std::thread other([&] { count_up(1); });
  count_up(2);
  other.join();
  CHECK(counter == 2 * kRounds);
}

TEST_CASE("robust_lock: a dead holder's lock is taken over", "[fault][softnic]") {
  RobustLock lock;
  lock.lock(1, all_alive);
  lock.lock(2, [](uint32_t holder) { return holder != 1; });
  lock.unlock();
  lock.lock(3, all_alive);  // it was free again
}

TEST_CASE("robust_lock: a living holder is waited for, however long", "[fault][softnic]") {
  RobustLock lock;
  std::atomic<int> asked{0};
  std::atomic<bool> entered{false};
  lock.lock(1, all_alive);
  std::thread other([&] {
    lock.lock(2, [&](uint32_t) {
      ++asked;
      return true;
    });
    entered = true;
    lock.unlock();
  });
  while (asked < 3) std::this_thread::yield();
  CHECK_FALSE(entered);
  lock.unlock();
  other.join();
  CHECK(entered);
}

}  // namespace
}  // namespace softnic
