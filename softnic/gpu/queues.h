// SPDX-License-Identifier: Apache-2.0
// Hardware queues (SOFTGPU=queues=N). A thread of each queue does its work in order. Streams share
// queues, so the work of one stream can wait for that of another.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace softnic::gpu {

struct Context;

// Never destroyed, because its thread may be running.
class Queue {
 public:
  Queue();
  // Appends work and returns its number.
  std::uint64_t add(std::function<void()> work);
  bool has_done(std::uint64_t number);
  void wait(std::uint64_t number);

 private:
  [[noreturn]] void thread_main();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t added_ = 0;
  std::uint64_t done_ = 0;
};

// A position in a queue. Without a queue, it counts as done.
struct Ticket {
  Queue* queue = nullptr;
  std::uint64_t number = 0;

  bool is_done() const { return queue == nullptr || queue->has_done(number); }
  void wait() const {
    if (queue != nullptr) queue->wait(number);
  }
};

class Queues {
 public:
  // Returns a queue for a new stream: each of `count` queues in turn. Streams of another context or
  // priority have other queues.
  Queue* next(const Context& context, int count, int priority);
  // The positions after the last work of each queue of the context.
  std::vector<Ticket> ends(const Context& context) const;

 private:
  struct Class {
    std::vector<Queue*> queues;
    std::size_t turn = 0;
  };
  std::map<std::pair<const Context*, int>, Class> classes_;
};

}  // namespace softnic::gpu
