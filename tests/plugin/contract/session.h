// SPDX-License-Identifier: Apache-2.0
//
// RAII wrappers around the plugin's calls: a communicator's session, comms, registrations,
// requests. Each wrapper checks everything that NCCL relies on in every call.
#pragma once

#include <sched.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/plugin/contract/memory.h"
#include "tests/plugin/contract/net.h"
#include "tests/support/must.h"

namespace beeline::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSlowed = true;
#else
inline constexpr bool kSlowed = false;
#endif

// The limit for a call that must not wait for the other end. It only has to tell a computation from
// a wait, which would last for ever.
inline constexpr std::chrono::seconds kAtOnce{30};

template <class Act>
auto at_once(Act&& act) {
  const Clock::time_point start = Clock::now();
  auto result = act();
  BL_MUST(Clock::now() - start < kAtOnce);
  return result;
}

// Calls `ready` until it is true. Throws when that takes too long.
template <class Ready>
void wait_until(Ready&& ready, const char* what, std::chrono::nanoseconds patience = kPatience) {
  const Clock::time_point deadline = Clock::now() + patience;
  while (!ready()) {
    if (Clock::now() > deadline) throw MustError(std::string("waited too long for ") + what);
    sched_yield();
  }
}

// One communicator: init at the start, finalize at the end. Sessions of one process may be in
// several threads, but start and end one at a time, as under NCCL's lock.
class Session {
 public:
  explicit Session(Abi abi = kNewest, int traffic_class = NCCL_NET_TRAFFIC_CLASS_UNDEF);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  Net& net() const noexcept { return *net_; }
  void* context() const noexcept { return context_; }
  int devices() const;
  Properties properties(int dev) const;

 private:
  std::unique_ptr<Net> net_;
  ncclNetCommConfig_v10_t config_;
  void* context_ = nullptr;
};

struct Handle {
  alignas(8) std::array<uint8_t, NCCL_NET_HANDLE_MAXSIZE> bytes;
};

enum class CommKind { kListen, kSend, kRecv };

// A listen, send or receive comm. The destructor closes it unless close() or abandon() was called.
class Comm {
 public:
  Comm() = default;
  Comm(Net& net, CommKind kind, void* raw) : net_(&net), kind_(kind), raw_(raw) {}
  Comm(Comm&& other) noexcept
      : net_(other.net_), kind_(other.kind_), raw_(std::exchange(other.raw_, nullptr)) {}
  Comm& operator=(Comm&& other) noexcept {
    std::swap(net_, other.net_);
    std::swap(kind_, other.kind_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Comm();

  void* raw() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != nullptr; }
  void close();  // must succeed
  // Never closes it, as a communicator that is aborted while it is being set up.
  void abandon() noexcept { raw_ = nullptr; }

 private:
  Net* net_ = nullptr;
  CommKind kind_ = CommKind::kListen;
  void* raw_ = nullptr;
};

// The outcome of one connect or accept. Success without a comm means "call again".
struct Attempt {
  ncclResult_t result;
  void* comm;
};
Attempt try_connect(const Session& session, int dev, Handle& handle);
Attempt try_accept(const Session& session, const Comm& listener);

Comm listen(const Session& session, int dev, Handle* handle);
Comm connect(const Session& session, int dev, Handle& handle);  // waits
Comm accept(const Session& session, const Comm& listener);      // waits

// Both ends of a connection, held by one thread.
struct Link {
  Comm send;
  Comm recv;
};
// Calls connect and accept in turn until there is a connection.
Link link_between(const Session& sender, int send_dev, Handle& handle, const Session& receiver,
                  const Comm& listener);
Link link_to_self(const Session& session, int send_dev = 0, int recv_dev = 0);

// A registration of memory; the constructors register host memory. The destructor deregisters it
// unless drop() was called.
class Mr {
 public:
  Mr() = default;
  Mr(Net& net, const Comm& comm, void* data, size_t size);
  // Takes over a registration that the caller has made.
  static Mr take(Net& net, const Comm& comm, void* raw) {
    Mr mr;
    mr.net_ = &net;
    mr.comm_ = comm.raw();
    mr.raw_ = raw;
    return mr;
  }
  Mr(Net& net, const Comm& comm, const Memory& memory)
      : Mr(net, comm, memory.at(), memory.size()) {}
  Mr(Mr&& other) noexcept
      : net_(other.net_), comm_(other.comm_), raw_(std::exchange(other.raw_, nullptr)) {}
  Mr& operator=(Mr&& other) noexcept {
    std::swap(net_, other.net_);
    std::swap(comm_, other.comm_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Mr();

  void* raw() const noexcept { return raw_; }
  void drop();  // must succeed

 private:
  Net* net_ = nullptr;
  void* comm_ = nullptr;
  void* raw_ = nullptr;
};

// One buffer of an isend or irecv.
struct Part {
  uint8_t* data;
  size_t size;
  int tag;
  void* mhandle;
};

// A request that the plugin returned.
class Request {
 public:
  Request() = default;  // no request: NCCL is to call again
  Request(Net& net, void* raw, size_t parts) : net_(&net), raw_(raw), parts_(parts) {}

  explicit operator bool() const noexcept { return raw_ != nullptr; }
  void* raw() const noexcept { return raw_; }
  bool is_done() const noexcept { return done_; }
  // Calls test once, unless the request is done already.
  ncclResult_t try_poll();
  bool poll();    // must succeed
  void finish();  // polls until it is done
  // The sizes that test reported, once the request is done.
  size_t size(size_t part = 0) const { return sizes_.at(part); }
  const std::vector<size_t>& sizes() const noexcept { return sizes_; }

 private:
  Net* net_ = nullptr;
  void* raw_ = nullptr;
  size_t parts_ = 0;
  bool done_ = false;
  std::vector<size_t> sizes_;
};

// Polls them in turn until all are done.
void finish_all(std::span<Request> requests);
void finish_both(Request& one, Request& other);

// Return no request if NCCL is to call again. The call must succeed.
Request try_isend(Net& net, const Comm& comm, const Part& part);
Request try_irecv(Net& net, const Comm& comm, std::span<const Part> parts);
// Return the result whatever it is, and no request if it is an error.
std::pair<ncclResult_t, Request> any_isend(Net& net, const Comm& comm, const Part& part);
std::pair<ncclResult_t, Request> any_irecv(Net& net, const Comm& comm, std::span<const Part> parts);
// Call again until there is a request.
Request isend(Net& net, const Comm& comm, const Part& part);
Request irecv(Net& net, const Comm& comm, std::span<const Part> parts);
inline Request irecv(Net& net, const Comm& comm, const Part& part) {
  return irecv(net, comm, std::span(&part, 1));
}

// From v9 on: a receive whose completion NCCL does not need. It gets a request nevertheless.
Request irecv_optional(Net& net, const Comm& comm, Part part);

// Returns no request if there is nothing to wait for.
Request iflush(Net& net, const Comm& comm, std::span<const Part> parts, std::vector<int> sizes);
inline void finish_flush(Request request) {
  if (request) request.finish();
}

// Moves one message from the sender's buffer to the receiver's.
void carry(Net& net, const Link& link, const Part& from, const Part& to);
// Moves one message between buffers of its own, which shows that the two ends are connected.
void must_carry(Net& net, const Link& link, uint32_t seed);

}  // namespace beeline::test
