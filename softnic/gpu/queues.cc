// SPDX-License-Identifier: Apache-2.0
#include "softnic/gpu/queues.h"

#include <thread>
#include <utility>

#include "common/base/blocked_signals.h"

namespace softnic::gpu {

Queue::Queue() {
  const beeline::BlockedSignals blocked;
  std::thread([this] { thread_main(); }).detach();
}

std::uint64_t Queue::add(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(work));
  changed_.notify_all();
  return ++added_;
}

bool Queue::has_done(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void Queue::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

void Queue::thread_main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty(); });
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

Queue* Queues::next(const Context& context, int count, int priority) {
  Class& all = classes_[{&context, priority}];
  const std::size_t place = all.turn++ % static_cast<std::size_t>(count);
  while (all.queues.size() <= place) all.queues.push_back(new Queue);
  return all.queues[place];
}

std::vector<Ticket> Queues::ends(const Context& context) const {
  std::vector<Ticket> ends;
  for (const auto& [key, all] : classes_) {
    if (key.first != &context) continue;
    for (Queue* const queue : all.queues) ends.push_back({queue, queue->add([] {})});
  }
  return ends;
}

}  // namespace softnic::gpu
