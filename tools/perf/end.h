// SPDX-License-Identifier: Apache-2.0
//
// The common part of SendEnd and RecvEnd, the two ends of a comm. Only the progress thread sends,
// receives and tests, and only the service thread registers memory. The main thread reads the
// counters, to report which end waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tools/perf/buffer.h"
#include "tools/perf/net.h"

namespace beeline::perf {

class End {
 public:
  End(const Net& net, void* comm, std::string label)
      : net_(net), comm_(comm), label_(std::move(label)) {}
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void* comm() const noexcept { return comm_; }
  const std::string& label() const noexcept { return label_; }
  std::uint64_t posted() const noexcept { return posted_.load(std::memory_order_relaxed); }
  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_relaxed); }
  // The number of calls to which the plugin answered "call again".
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

  // Registers the first `size` bytes of the buffer.
  Outcome<void*> register_memory(const Buffer& buffer, size_t size);
  NetResult<bool> deregister(void* mr);

 protected:
  // Only one thread writes a counter, so no read-modify-write is needed.
  static void add_one(std::atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Failure<NetFailure> failed(const char* call, ncclResult_t result) const {
    return fail(NetFailure{call, result, nullptr, this});
  }
  Failure<NetFailure> broke_contract(const char* call, const char* complaint) const {
    return fail(NetFailure{call, ncclSuccess, complaint, this});
  }

  Outcome<void*> register_as(const Buffer& buffer, size_t size);
  NetResult<void*> register_pointer(void* data, size_t size, int type);
  Outcome<void*> register_dmabuf(const Buffer& buffer, size_t size);

  const Net& net_;
  CallWatch& data_calls_ = net_.watches->progress;
  void* const comm_;
  const std::string label_;
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::multimap<void*, std::shared_ptr<void>>
      leases_;  // by registration; only the service thread uses it
};

}  // namespace beeline::perf
