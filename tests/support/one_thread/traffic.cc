// SPDX-License-Identifier: Apache-2.0
#include "tests/support/one_thread/traffic.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "tests/support/must.h"

namespace beeline::bench {
namespace {

constexpr int kTag = 7;  // of the first slot; those of a group follow
constexpr std::size_t kPage = 4096;

std::size_t rounded(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

}  // namespace

const char* name_of(Pattern pattern) noexcept {
  switch (pattern) {
    case Pattern::kOneAtATime: return "one at a time";
    case Pattern::kWindow: return "window of 8";
    case Pattern::kBatches: return "batches of 8";
    case Pattern::kGroups: return "groups of 8";
    case Pattern::kEmptyTests: return "test that finds nothing";
    case Pattern::kNoCredit: return "isend without credit";
  }
  return "?";
}

void Buffers::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

Buffers::Buffers(std::size_t bytes)
    : bytes_(bytes),
      step_(rounded(bytes)),
      memory_(static_cast<std::byte*>(
          std::aligned_alloc(kPage, (all_bytes() + kPage - 1) / kPage * kPage))) {
  BL_MUST(memory_ != nullptr);
  std::memset(memory_.get(), 0, all_bytes());
}

Traffic::Traffic(nccl::Net& net, const CommPair& comms, const Buffers& buffers)
    : net_(net), comms_(comms), buffers_(buffers) {
  BL_BENCH_CALL(net_.calls.regMr(comms_.send, buffers_.sent(0), buffers_.all_bytes(), NCCL_PTR_HOST,
                                 &send_memory_));
  BL_BENCH_CALL(net_.calls.regMr(comms_.recv, buffers_.sent(0), buffers_.all_bytes(), NCCL_PTR_HOST,
                                 &recv_memory_));
}

Traffic::~Traffic() {
  (void)net_.calls.deregMr(comms_.send, send_memory_);
  (void)net_.calls.deregMr(comms_.recv, recv_memory_);
}

void Traffic::run(Pattern pattern, std::size_t count) {
  switch (pattern) {
    case Pattern::kOneAtATime: return one_at_a_time(count);
    case Pattern::kWindow: return window(count);
    case Pattern::kBatches: return batches(count);
    case Pattern::kGroups: return groups(count);
    case Pattern::kEmptyTests: return empty_tests(count);
    case Pattern::kNoCredit: return no_credit(count);
  }
}

void Traffic::one_at_a_time(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = i % kInFlight;
    receive(slot);
    send(slot);
    finish_send(slot);
    finish_receive(slot);
  }
}

void Traffic::window(std::size_t count) {
  for (std::size_t i = 0; i < count + kInFlight; ++i) {
    const std::size_t slot = i % kInFlight;  // of this one, and of the oldest
    if (i >= kInFlight) {
      finish_send(slot);
      finish_receive(slot);
    }
    if (i < count) {
      receive(slot);
      send(slot);
    }
  }
}

void Traffic::batches(std::size_t count) {
  for (std::size_t i = 0; i < count; i += kInFlight) {
    for (std::size_t slot = 0; slot < kInFlight; ++slot) receive(slot);
    for (std::size_t slot = 0; slot < kInFlight; ++slot) send(slot);
    for (std::size_t slot = 0; slot < kInFlight; ++slot) finish_send(slot);
    for (std::size_t slot = 0; slot < kInFlight; ++slot) finish_receive(slot);
  }
}

void Traffic::groups(std::size_t count) {
  for (std::size_t i = 0; i < count; i += kInFlight) {
    void* const request = receive_group();
    for (std::size_t slot = 0; slot < kInFlight; ++slot) send(slot);
    for (std::size_t slot = 0; slot < kInFlight; ++slot) finish_send(slot);
    finish_group(request);
  }
}

void Traffic::empty_tests(std::size_t count) {
  receive(0);
  std::array<int, kInFlight> sizes{};
  for (std::size_t i = 0; i < count; ++i) BL_MUST(!test(messages_[0].recv, sizes));
  send(0);
  finish_send(0);
  finish_receive(0);
}

void Traffic::no_credit(std::size_t count) {
  void* request = nullptr;
  for (std::size_t i = 0; i < count; ++i) BL_MUST(!try_send(0, &request));
}

// Payloads are not compared, since several messages share the buffers.
std::size_t Traffic::fill() {
  std::vector<void*> receives;
  std::deque<void*> sends;
  std::array<int, kInFlight> sizes{};
  while (void* const request = try_receive_group()) receives.push_back(request);
  const std::size_t buffers = receives.size() * kInFlight;
  for (std::size_t i = 0; i < buffers; ++i) {
    void* request = nullptr;
    while (!try_send(i % kInFlight, &request)) {
      if (sends.empty()) {
        BL_MUST(!test(receives.front(), sizes));
      } else if (test(sends.front(), sizes)) {  // the comm can split only some of them at a time
        sends.pop_front();
      }
    }
    sends.push_back(request);
  }
  for (void*& request : sends) {
    while (!test(request, sizes)) {
    }
  }
  for (void*& request : receives) {
    while (!test(request, sizes)) {
    }
    for (const int size : sizes) BL_MUST(static_cast<std::size_t>(size) == buffers_.bytes());
  }
  return buffers;
}

void Traffic::receive(std::size_t slot) {
  void* data = buffers_.received(slot);
  std::size_t size = buffers_.bytes();
  int tag = kTag;
  void* profiler = nullptr;
  Message& message = messages_[slot];
  message.number = next_++;
  for (;; ++empty_calls_.receives) {
    BL_BENCH_CALL(net_.calls.irecv(comms_.recv, 1, &data, &size, &tag, &recv_memory_, &profiler,
                                   &message.recv));
    if (message.recv != nullptr) return;
  }
}

void* Traffic::try_receive_group() {
  std::array<void*, kInFlight> data{};
  std::array<std::size_t, kInFlight> sizes{};
  std::array<int, kInFlight> tags{};
  std::array<void*, kInFlight> memories{};
  std::array<void*, kInFlight> profilers{};
  for (std::size_t slot = 0; slot < kInFlight; ++slot) {
    data[slot] = buffers_.received(slot);
    sizes[slot] = buffers_.bytes();
    tags[slot] = kTag + static_cast<int>(slot);
    memories[slot] = recv_memory_;
    messages_[slot].number = next_++;
    messages_[slot].recv = this;  // a marker for "no request of its own"
  }
  void* request = nullptr;
  BL_BENCH_CALL(net_.calls.irecv(comms_.recv, kInFlight, data.data(), sizes.data(), tags.data(),
                                 memories.data(), profilers.data(), &request));
  return request;
}

void* Traffic::receive_group() {
  for (;; ++empty_calls_.receives) {
    if (void* const request = try_receive_group()) return request;
  }
}

bool Traffic::try_send(std::size_t slot, void** request) {
  const bool in_group = messages_[slot].recv == this;
  const int tag = kTag + (in_group ? static_cast<int>(slot) : 0);
  BL_BENCH_CALL(net_.calls.isend(comms_.send, buffers_.sent(slot), buffers_.bytes(), tag,
                                 send_memory_, nullptr, request));
  if (*request == nullptr) ++empty_calls_.sends;
  return *request != nullptr;
}

// Tests the receive as well, because a plugin may grant an irecv only in a later call of the same
// comm.
void Traffic::send(std::size_t slot) {
  stamp(slot);
  while (!try_send(slot, &messages_[slot].send)) {
    std::array<int, kInFlight> sizes{};
    if (messages_[slot].recv != this) BL_MUST(!test(messages_[slot].recv, sizes));
  }
}

void Traffic::finish_send(std::size_t slot) {
  std::array<int, kInFlight> sizes{};
  while (!test(messages_[slot].send, sizes)) {
  }
  BL_MUST(static_cast<std::size_t>(sizes[0]) == buffers_.bytes());
}

void Traffic::finish_receive(std::size_t slot) {
  std::array<int, kInFlight> sizes{};
  while (!test(messages_[slot].recv, sizes)) {
  }
  BL_MUST(static_cast<std::size_t>(sizes[0]) == buffers_.bytes());
  compare(slot);
}

void Traffic::finish_group(void* request) {
  std::array<int, kInFlight> sizes{};
  while (!test(request, sizes)) {
  }
  for (std::size_t slot = 0; slot < kInFlight; ++slot) {
    BL_MUST(static_cast<std::size_t>(sizes[slot]) == buffers_.bytes());
    messages_[slot].recv = nullptr;
    compare(slot);
  }
}

bool Traffic::test(void*& request, std::array<int, kInFlight>& sizes) {
  int done = 0;
  BL_BENCH_CALL(net_.calls.test(request, &done, sizes.data()));
  if (done == 0) {
    ++empty_calls_.tests;
    return false;
  }
  request = nullptr;
  return true;
}

// Every word differs from the old content, so that a missing byte is noticed.
void Traffic::stamp(std::size_t slot) {
  const std::uint64_t first = messages_[slot].number * 0x9E37'79B9'7F4A'7C15;
  std::byte* const data = buffers_.sent(slot);
  for (std::size_t at = 0; at < buffers_.bytes(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = first + at;
    std::memcpy(data + at, &word, std::min(sizeof word, buffers_.bytes() - at));
  }
}

void Traffic::compare(std::size_t slot) const {
  BL_MUST(std::memcmp(buffers_.sent(slot), buffers_.received(slot), buffers_.bytes()) == 0);
}

}  // namespace beeline::bench
