// SPDX-License-Identifier: Apache-2.0
//
// Establishes many connections between two processes at once, and measures the time, the cost for
// the threads of NCCL that call the plugin, and the descriptors. Fails if one of those threads
// sleeps in a call, or if more than 2 calls of 1000 take over a millisecond of CPU time. With a
// limit on descriptors it fails only if that is exceeded, so that it may run beside other tests.
//
// Usage: connections [COUNT [DESCRIPTORS]]     default: 1000 connections and the shell's limit
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/plugin/contract/levels.h"
#include "tests/plugin/contract/world.h"
#include "tests/plugin/scale/call_meter.h"

namespace beeline::test {
namespace {

constexpr Abi kAbi = Abi::kV8;
constexpr std::size_t kMessage = 64;
// Interrupts count as time of the thread that they interrupt, and the holder of a kernel lock may
// have been preempted. A slow virtual machine makes the longest of 1000 calls slow in every
// attempt, but not many of them. A plugin that waits or computes too long affects every attempt.
constexpr int kTries = 10;
constexpr std::uint64_t slow_calls_allowed(std::uint64_t calls) noexcept { return calls / 500; }
constexpr int kHeap = 64 << 20;
constexpr int kPiece = kHeap / 8;  // glibc maps much larger blocks separately

struct Task {
  std::size_t count = 1000;
  std::size_t descriptors = 0;  // the limit; 0: unchanged
};

// The first word of this connection's message.
std::uint8_t mark(std::size_t connection) {
  return static_cast<std::uint8_t>(1 + connection % 251);
}

// Growing the heap takes the kernel's lock on the memory of the process, and touching new pages may
// take it. The heap is grown beforehand, so that the plugin's allocations do not wait for it.
void grow_heap_beforehand() {
  BL_MUST(mallopt(M_MMAP_THRESHOLD, 2 * kPiece) == 1);
  BL_MUST(mallopt(M_TRIM_THRESHOLD, 2 * kHeap) == 1);
  const std::vector<std::string> touched(kHeap / kPiece, std::string(kPiece, 'x'));
}

// Counts the calls of one process.
struct End {
  explicit End(const Task& task) : memory(task.count * kMessage) {
    grow_heap_beforehand();
    if (task.descriptors == 0) return;
    const rlimit limit{.rlim_cur = task.descriptors, .rlim_max = task.descriptors};
    BL_MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }

  Net& net() const { return session.net(); }
  void* reg(void* comm) {
    void* handle = nullptr;
    BL_MUST_SUCCEED(meter.around(ControlCall::kRegMr, [&] {
      return net().reg_mr(comm, memory.data(), memory.size(), NCCL_PTR_HOST, &handle);
    }));
    return handle;
  }
  std::uint8_t* message(std::size_t i) { return &memory[i * kMessage]; }
  void judge(const char* who) const;

  Session session{kAbi};
  CallMeter meter;
  std::vector<std::uint8_t> memory;
};

// Shared by all processes: whether a call slept, or too many were slow.
std::atomic<bool>& was_costly() {
  static auto* const shared = static_cast<std::atomic<bool>*>(
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
           -1, 0));
  if (shared == MAP_FAILED) throw MustError("no shared memory");
  return *shared;
}

void End::judge(const char* who) const {
  std::printf("%s: %td descriptors open\n%s", who, levels().descriptors, meter.table().c_str());
  std::fflush(stdout);
  for (std::size_t i = 0; i < kControlCalls; ++i) {
    const CallMeter::Row& row = meter.row(static_cast<ControlCall>(i));
    if (row.sleeps > 0 || row.slow > slow_calls_allowed(row.calls)) was_costly() = true;
  }
}

// Calls `poll` on each in turn until all have a comm. Yields in between, so that other threads run.
template <class Poll>
void poll_all(std::vector<void*>& comms, Poll&& poll) {
  std::size_t missing = comms.size();
  const Clock::time_point deadline = Clock::now() + 2 * kPatience;
  while (missing > 0) {
    BL_MUST(Clock::now() < deadline);
    for (std::size_t i = 0; i < comms.size(); ++i) {
      if (comms[i] != nullptr) continue;
      poll(i, &comms[i]);
      if (comms[i] != nullptr) --missing;
    }
    sched_yield();
  }
}

void report(const char* what, std::int64_t ns, std::size_t count) {
  std::printf("%s: %zu connections in %.1f ms, %.1f us each\n", what, count,
              static_cast<double>(ns) / 1e6,
              static_cast<double>(ns) / 1e3 / static_cast<double>(count));
}

template <class Close>
void close_all(End& end, ControlCall call, const std::vector<void*>& comms, Close&& close) {
  for (void* const comm : comms) {
    BL_MUST_SUCCEED(end.meter.around(call, [&] { return close(comm); }));
  }
}

void deregister_all(End& end, const std::vector<void*>& comms, const std::vector<void*>& handles) {
  for (std::size_t i = 0; i < comms.size(); ++i) {
    BL_MUST_SUCCEED(end.meter.around(ControlCall::kDeregMr,
                                     [&] { return end.net().dereg_mr(comms[i], handles[i]); }));
  }
}

void listen_and_accept(Peer& peer, const Task& task) {
  End end(task);
  peer.meet();
  const std::int64_t start = now_ns();
  std::vector<void*> listeners(task.count);
  for (void*& listener : listeners) {
    Handle handle{};
    BL_MUST_SUCCEED(end.meter.around(ControlCall::kListen, [&] {
      return end.net().listen(end.session.context(), 0, handle.bytes.data(), &listener);
    }));
    peer.send(1, handle);
  }
  const std::int64_t listened = now_ns();
  std::vector<void*> comms(task.count);
  poll_all(comms, [&](std::size_t i, void** comm) {
    BL_MUST_SUCCEED(end.meter.around(
        ControlCall::kAccept, [&] { return end.net().accept(listeners[i], comm, nullptr); }));
  });
  report("listen and accept", now_ns() - start, task.count);
  report("  of it listen", listened - start, task.count);
  std::vector<void*> handles;
  handles.reserve(comms.size());
  for (void* const comm : comms) handles.push_back(end.reg(comm));

  // All connections carry a message at the same time. One after another, each would have to wait
  // for a processor.
  std::vector<Request> requests;
  for (std::size_t i = 0; i < task.count; ++i) {
    Comm comm(end.net(), CommKind::kRecv, comms[i]);
    requests.push_back(irecv(end.net(), comm, Part{end.message(i), kMessage, 0, handles[i]}));
    comm.abandon();  // closed below
  }
  peer.meet();
  finish_all(requests);
  for (std::size_t i = 0; i < task.count; ++i) BL_MUST(*end.message(i) == mark(i));
  peer.meet();
  deregister_all(end, comms, handles);
  const std::int64_t closing = now_ns();
  close_all(end, ControlCall::kCloseListen, listeners,
            [&](void* comm) { return end.net().close_listen(comm); });
  close_all(end, ControlCall::kCloseRecv, comms,
            [&](void* comm) { return end.net().close_recv(comm); });
  report("close", now_ns() - closing, task.count);
  end.judge("accepting process");
}

void connect_and_send(Peer& peer, const Task& task) {
  End end(task);
  peer.meet();
  std::vector<Handle> tickets;
  for (std::size_t i = 0; i < task.count; ++i) tickets.push_back(peer.receive<Handle>(0));
  const std::int64_t start = now_ns();
  std::vector<void*> comms(task.count);
  poll_all(comms, [&](std::size_t i, void** comm) {
    BL_MUST_SUCCEED(end.meter.around(ControlCall::kConnect, [&] {
      return end.net().connect(end.session.context(), 0, tickets[i].bytes.data(), comm, nullptr);
    }));
  });
  report("connect", now_ns() - start, task.count);
  std::vector<void*> handles;
  handles.reserve(comms.size());
  for (void* const comm : comms) handles.push_back(end.reg(comm));

  peer.meet();  // all receives are posted
  const std::int64_t sending = now_ns();
  std::vector<Request> requests;
  for (std::size_t i = 0; i < task.count; ++i) {
    *end.message(i) = mark(i);
    Comm comm(end.net(), CommKind::kSend, comms[i]);
    requests.push_back(isend(end.net(), comm, {end.message(i), kMessage, 0, handles[i]}));
    comm.abandon();  // closed below
  }
  finish_all(requests);
  peer.meet();
  report("a message on each", now_ns() - sending, task.count);
  deregister_all(end, comms, handles);
  close_all(end, ControlCall::kCloseSend, comms,
            [&](void* comm) { return end.net().close_send(comm); });
  end.judge("connecting process");
}

int run(const Task& task) {
  try {
    for (int i = 1; i <= kTries; ++i) {
      was_costly() = false;
      run_processes({[&](Peer& peer) { listen_and_accept(peer, task); },
                     [&](Peer& peer) { connect_and_send(peer, task); }});
      if (!was_costly() || task.descriptors != 0) return 0;
      std::printf("a call slept, or too many took over %lld us of CPU time (try %d of %d)\n",
                  static_cast<long long>(CallMeter::kSlowNs / kNsPerUs), i, kTries);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

}  // namespace
}  // namespace beeline::test

int main(int argc, char** argv) {
  beeline::test::Task task;
  if (argc > 1) task.count = std::strtoul(argv[1], nullptr, 10);
  if (argc > 2) task.descriptors = std::strtoul(argv[2], nullptr, 10);
  if (task.count == 0) return 2;
  return beeline::test::run(task);
}
