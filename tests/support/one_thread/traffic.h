// SPDX-License-Identifier: Apache-2.0
//
// Moves messages from one comm to another in one thread that has both, with the calls of NCCL's
// progress thread: the oldest request is tested until it is done. Every payload is compared, except
// by fill().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/one_thread/setup.h"

namespace beeline::bench {

enum class Pattern {
  kOneAtATime,  // a receive, its send, and both are finished before the next
  kWindow,      // kInFlight receives and sends under way: one finishes, one begins
  kBatches,     // kInFlight begin, then all finish
  kGroups,      // the same with one irecv of kInFlight buffers
  kEmptyTests,  // a receive is tested for which nothing was sent
  kNoCredit,    // sends for which no receive was posted
};
const char* name_of(Pattern pattern) noexcept;

// Buffers that both ends of all comms share.
class Buffers {
 public:
  static constexpr std::size_t kInFlight = 8;

  explicit Buffers(std::size_t bytes);

  std::size_t bytes() const noexcept { return bytes_; }
  std::byte* sent(std::size_t slot) const noexcept { return memory_.get() + slot * step_; }
  std::byte* received(std::size_t slot) const noexcept { return sent(kInFlight + slot); }
  std::size_t all_bytes() const noexcept { return 2 * kInFlight * step_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  std::size_t bytes_;
  std::size_t step_;
  std::unique_ptr<std::byte, Free> memory_;
};

class Traffic {
 public:
  static constexpr std::size_t kInFlight = Buffers::kInFlight;

  // The number of calls that had to be repeated.
  struct EmptyCalls {
    std::uint64_t tests = 0;
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
  };

  Traffic(nccl::Net& net, const CommPair& comms, const Buffers& buffers);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Runs `count` messages, tests or sends. For messages it must be a multiple of kInFlight. No
  // request is in flight afterwards.
  void run(Pattern pattern, std::size_t count);

  // To measure memory: as many irecvs of kInFlight buffers as the comm accepts are in flight at
  // once, with all their sends. Returns the number of buffers.
  std::size_t fill();

  const EmptyCalls& empty_calls() const noexcept { return empty_calls_; }

 private:
  struct Message {
    std::uint64_t number = 0;
    void* send = nullptr;
    void* recv = nullptr;
  };

  void one_at_a_time(std::size_t count);
  void window(std::size_t count);
  void batches(std::size_t count);
  void groups(std::size_t count);
  void empty_tests(std::size_t count);
  void no_credit(std::size_t count);

  Message& message(std::size_t number) noexcept { return messages_[number % kInFlight]; }
  void receive(std::size_t slot);
  void* try_receive_group();
  void* receive_group();
  bool try_send(std::size_t slot, void** request);
  void send(std::size_t slot);
  void finish_send(std::size_t slot);
  void finish_receive(std::size_t slot);
  void finish_group(void* request);
  bool test(void*& request, std::array<int, kInFlight>& sizes);
  void stamp(std::size_t slot);
  void compare(std::size_t slot) const;

  nccl::Net& net_;
  const CommPair comms_;
  const Buffers& buffers_;
  void* send_memory_ = nullptr;
  void* recv_memory_ = nullptr;
  std::uint64_t next_ = 1;
  std::array<Message, kInFlight> messages_{};
  EmptyCalls empty_calls_;
};

}  // namespace beeline::bench
