// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/engine.h"

#include <atomic>
#include <optional>
#include <thread>

#include "common/base/clock.h"
#include "tests/support/catch.h"

namespace softnic {
namespace {

using beeline::kNsPerMs;
using beeline::now_ns;

// Takes long enough for the engine's thread to go to sleep, and then has to be run again.
class TwiceJob final : public Engine::Job {
 public:
  std::optional<std::int64_t> run_job() override {
    if (runs != 0) {
      ++runs;
      return std::nullopt;
    }
    first_thread = std::this_thread::get_id();
    for (const std::int64_t end = now_ns() + 3 * kNsPerMs; now_ns() < end;)
      std::this_thread::yield();
    ++runs;
    return now_ns() + kNsPerMs;
  }

  std::atomic<int> runs{0};
  std::thread::id first_thread;
};

TEST_CASE("engine: its thread goes on with a job that a polling thread has begun", "[softnic]") {
  Engine engine;
  REQUIRE(engine.start() == 0);
  int begun_here = 0;
  for (int i = 0; i < 1000 && begun_here < 10; ++i) {
    TwiceJob job;
    engine.schedule(job, now_ns());
    engine.run_due_job();
    // From here on, nobody polls.
    const std::int64_t patience = now_ns() + 60'000 * kNsPerMs;
    while (job.runs != 2 && now_ns() < patience) std::this_thread::yield();
    REQUIRE(job.runs == 2);
    begun_here += job.first_thread == std::this_thread::get_id() ? 1 : 0;
    engine.cancel(job);
  }
  CHECK(begun_here == 10);
}

}  // namespace
}  // namespace softnic
