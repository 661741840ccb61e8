// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/clock.h"

#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "tests/plugin/simulation/draw.h"

namespace beeline::simulation {
namespace {

// Not 0, which stands for "never" in several places.
constexpr std::int64_t kStart = 1000 * kSec;

bool is_simulated = false;
std::int64_t simulated_ns = kStart;
std::uint64_t random_bytes_drawn = 0;
// By descriptor: what was written and not yet read. Those of mailboxes, which are read after each
// call of the application: as system calls they were an eighth of all time.
std::array<std::uint64_t, 1024> event_counts{};

}  // namespace

Agenda::Agenda() {
  is_simulated = true;
  simulated_ns = kStart;
  random_bytes_drawn = 0;
}

Agenda::~Agenda() {
  for (const Entry& entry : entries_) entry.task->clear();
  is_simulated = false;
}

std::int64_t Agenda::now() const noexcept { return simulated_ns; }

Agenda::Task& Agenda::new_task() {
  if (free_tasks_.empty()) return tasks_.emplace_back();
  Task& task = *free_tasks_.back();
  free_tasks_.pop_back();
  return task;
}

void Agenda::add(std::int64_t when_ns, Task& task) {
  entries_.push_back({std::max(when_ns, simulated_ns), ++added_, &task});
  std::ranges::push_heap(entries_, Later());
}

bool Agenda::step(std::int64_t until_ns) {
  if (entries_.empty() || entries_.front().when_ns > until_ns) {
    simulated_ns = std::max(simulated_ns, until_ns);
    return false;
  }
  std::ranges::pop_heap(entries_, Later());
  const Entry next = entries_.back();
  entries_.pop_back();
  simulated_ns = next.when_ns;
  ++calls_;
  // The place is free again after the call, even if that throws.
  const auto give_back = [this](Task* task) {
    task->clear();
    free_tasks_.push_back(task);
  };
  const std::unique_ptr<Task, decltype(give_back)> task(next.task, give_back);
  task->call();
  return true;
}

}  // namespace beeline::simulation

// --- In place of the C library's: the linker's --wrap gives all calls of the program to these ---

// The linker makes these names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_clock_gettime(clockid_t clock, timespec* now);
int __wrap_clock_gettime(clockid_t clock, timespec* now) {
  using namespace beeline::simulation;
  if (!is_simulated) return __real_clock_gettime(clock, now);
  now->tv_sec = simulated_ns / kSec;
  now->tv_nsec = simulated_ns % kSec;
  return 0;
}

std::time_t __real_time(std::time_t* now);
std::time_t __wrap_time(std::time_t* now) {
  using namespace beeline::simulation;
  if (!is_simulated) return __real_time(now);
  const std::time_t seconds = simulated_ns / kSec;
  if (now != nullptr) *now = seconds;
  return seconds;
}

ssize_t __real_getrandom(void* bytes, size_t count, unsigned flags);
ssize_t __wrap_getrandom(void* bytes, size_t count, unsigned flags) {
  using namespace beeline::simulation;
  if (!is_simulated) return __real_getrandom(bytes, count, flags);
  for (size_t i = 0; i < count; ++i) {
    static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(mix(++random_bytes_drawn));
  }
  return static_cast<ssize_t>(count);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags) {
  using namespace beeline::simulation;
  const int fd = __real_eventfd(count, flags);
  if (fd >= 0) event_counts.at(static_cast<std::size_t>(fd)) = count;
  return fd;
}

int __wrap_eventfd_write(int fd, eventfd_t count) {
  beeline::simulation::event_counts.at(static_cast<std::size_t>(fd)) += count;
  return 0;
}

// As one with EFD_NONBLOCK.
int __wrap_eventfd_read(int fd, eventfd_t* count) {
  *count = std::exchange(beeline::simulation::event_counts.at(static_cast<std::size_t>(fd)), 0);
  if (*count != 0) return 0;
  errno = EAGAIN;
  return -1;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
