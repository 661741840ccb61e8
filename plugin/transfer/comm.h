// SPDX-License-Identifier: Apache-2.0
//
// The part of a comm that both ends share: the connection, its paths, and test().
//
// Threads: isend, irecv, iflush and test of one comm are called by one thread at a time, the data
// thread. Registration is called by another at the same time and reads only what is const here.
// Closing is called when no other call is in progress.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>

#include "common/base/hot.h"
#include "common/base/result.h"
#include "common/check/assert.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/device/standby_devices.h"
#include "plugin/gdr/gpu_direct.h"
#include "plugin/stats/stats_page.h"
#include "plugin/transfer/comm_gate.h"
#include "plugin/transfer/completions.h"
#include "plugin/transfer/credit_reader.h"
#include "plugin/transfer/path.h"
#include "plugin/transfer/path_events.h"
#include "plugin/transfer/registered_buffers.h"
#include "plugin/transfer/request.h"
#include "plugin/transfer/stall_watch.h"
#include "plugin/transfer/wait_watch.h"
#include "plugin/transfer/work_id.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/in_band.h"

namespace beeline {

struct CommOptions {
  std::size_t routed_above = 0;  // bytes; data on an adaptively routed path gets a notice above it
  std::int64_t stall_ns = 0;  // how long nothing may move before paths count as failed; 0: for ever
  std::int64_t give_up_ns = 0;  // how long it may be without a path that works; 0: for ever
  std::int64_t device_ns = 0;   // how long all its devices may be gone; 0: not at all
  std::int64_t peer_ns = 0;  // how long the peer may say nothing about a failed path; 0: the same
  // After how long a receiver asks whether a device has lost its line; 0: never.
  std::int64_t ask_after_ns = 0;
  bool early_done = false;    // a receive that NCCL need not wait for is done when it is granted
  bool split_on_qps = false;  // a message uses all queue pairs of a rail, and not one of them
  const RegistrationMeans* registration = nullptr;  // for comms that register buffers
  const StandbyDevices* standbys = nullptr;         // null: no device stands in for another
  GidPolicy gid = {};                               // of the loopback queue pair, as of connections
  PkeyChoice pkey = {};                             // the same
};

class SendComm;
struct TestFrame;

inline constexpr std::size_t kCacheLine = 64;

class Comm : private LinkUser {
 public:
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  Role role() const noexcept { return role_; }
  bool early_done() const noexcept { return early_done_; }
  std::span<Path> paths() noexcept { return {paths_, path_count_}; }
  std::span<const Path> paths() const noexcept { return {paths_, path_count_}; }
  // Whether it is the own device of one of the paths.
  bool is_own(const Device& device) const noexcept;
  // Those that may stand in for a device of the comm, the nearest first.
  std::span<const Device* const> standbys_for(const Device& own) const noexcept {
    return standbys_ == nullptr ? std::span<const Device* const>() : standbys_->of(own);
  }
  // The buffers that NCCL registers. The first call allocates.
  std::shared_ptr<RegisteredBuffers> buffers();

  // Moved by this path so far. For any thread. 0 if the comm is not in the statistics page and has
  // one path only.
  std::uint64_t bytes_of_path(std::size_t index) const noexcept {
    if (path_count_ > 1) return shared::load(paths_[index].bytes);
    return stats_.is_shown() ? stats_.count(Counter::kBytes) : 0;
  }
  // How often paths of the comm have failed. 0 if it is not in the statistics page.
  std::uint64_t path_failures() const noexcept {
    return stats_.is_shown() ? stats_.path_failures() : 0;
  }
  // Bytes per nanosecond that this path carries, as measured. 0: not known.
  virtual double rate_of_path(std::size_t /*index*/) const noexcept { return 0; }

  // Whether this path has work requests to complete, signaled or not.
  bool has_sends_under_way(const Path& path) const noexcept {
    return path.send_free != send_depth_;
  }

  // --- How isend and irecv begin ---
  // The caller may have passed the wrong end, which must not be used as the other one before these
  // say so.

  // Whether an isend may find credit, and the order word that the next line then has. A receiver
  // never has credit.
  struct Credit {
    enum State : std::uint8_t {
      kNone,     // there is nothing to do: NCCL calls again
      kHasCome,  // the line that the fast isend takes is there
      kSlow,     // SendComm::isend() has to be called, if this is a sender
    };
    State state;
    std::uint64_t order;
  };
  BL_INLINED Credit look_for_credit() const noexcept;
  // Enters the gate, if is_fast() for this role and so many paths.
  BL_INLINED bool enter_if_fast(Role role, Paths paths) noexcept {
    gate_.enter();
    if (gate_.is_fast(role, paths)) [[likely]]
      return true;
    gate_.leave();
    return false;
  }

  // For a request of which something is missing: polls. With `*done` all of it has arrived, or has
  // been sent, and the request is free again. `sizes` is null, or has one place for each buffer.
  Errc test(Request& request, int* done, int* sizes);
  // The same, if is_fast(). `End` is SendComm or RecvComm. Defined in test_request.h.
  template <class End>
  BL_INLINED static Errc test_fast(End& end, Request& request, int* done, int* sizes);
  bool is_fast(Role role) const noexcept { return gate_.is_fast(role, Paths::kOne); }
  // The same for a request of which nothing is missing.
  template <class End = void>
  BL_INLINED void finish(Request& request, int* done, int* sizes) noexcept;

  // --- LinkUser ---
  bool serve_if_idle() noexcept final;
  std::shared_ptr<RailBuffers> rail_buffers() final { return buffers(); }
  bool can_lose_devices() const noexcept final { return waits_for_devices_ || has_standby(); }
  void ask_peer() noexcept final;
  Waiting look_at_wait(std::int64_t now_ns) noexcept final;
  std::string name() const final;

  // --- For the implementation of PathEvents ---

  Link& link() const noexcept { return *link_; }
  StatsSlot& stats() noexcept { return stats_; }
  CommGate& gate() noexcept { return gate_; }
  PathEvents& events() const noexcept { return events_; }
  // Null: there is no GPU memory.
  const gdr::GpuDirect* gpus() const noexcept {
    return registration_ == nullptr ? nullptr : registration_->gpus;
  }
  const StallWatch& watch() const noexcept { return watch_; }
  // Whether another device of this host may stand in.
  bool has_standby() const noexcept;
  // Whether a path could not be made when the comm was, and still is not.
  bool has_missing_paths() const noexcept;
  // For logs: "sender on h1, device softnic0:1, to peer h2 (pid 4711) softnic1:1".
  std::string name_for_log(std::size_t path = 0) const;
  // The local key of the comm's control memory for this path's device.
  std::uint32_t control_key(const PathResources& resources) const noexcept {
    return resources.control ? resources.control->lkey : connection_.memory.lkey(resources.rail);
  }
  // Takes all completions that have come.
  virtual void collect() = 0;
  // After the peer's goodbye: finishes the requests whose lines are below `settled`, if this end
  // would wait for their acknowledgement. False: a request is left that can never finish.
  virtual bool finish_below(std::uint32_t settled) = 0;
  // Whether data below `settled` is still to arrive.
  virtual bool waits_below(std::uint32_t settled) const noexcept = 0;
  // Makes sure that on each path a work request is under way whose completion shows that the path
  // works.
  virtual Status probe_paths() = 0;
  // The line of the message whose work request has this wr_id. None: it belongs to no one message.
  virtual std::optional<std::uint32_t> line_of(std::uint64_t /*wr_id*/) noexcept { return {}; }
  // Receiver: the first one.
  virtual std::optional<AwaitedLine> awaited_line() noexcept { return {}; }
  // Sender: how a device has lost that line, or its message. Null: it has not.
  virtual const char* how_lost(std::uint32_t /*position*/) noexcept { return nullptr; }
  PathSigns signs_of(const Path& path) const noexcept;  // with several paths
  // Whether a completion of this path is to come.
  virtual bool owes_answer(const Path& path) const noexcept = 0;
  // --- If a path of several fails: path_fence.cc ---
  // From now on nothing is posted on the path, and the control thread is ordered to have its device
  // discard what still comes for it. kNoMemory: the path is as before. Another error: the device
  // may still take what comes, until the other end is fenced.
  Status fence(Path& path);
  // Polls the path that is being fenced.
  enum class FenceState : std::uint8_t {
    kOrdered,
    kRefused,  // the device may still take what comes
    kInError,  // it does not any more
    kDrained,  // everything that arrived before has been counted
  };
  FenceState poll_fence(Path& path);
  // Only the first half of fence(), which has to follow. False: no memory.
  bool suspend(Path& path);
  // Takes over the state that the engine has decided. Posts and grants go by other paths, or by
  // this one again, if the state says so.
  void set_state(Path& path, PathState next);
  // The device of this path is gone, and nothing is under way on it any more: what waits for the
  // device has to go on without. False: not now.
  virtual bool lose_device_of(Path& path) = 0;
  // The path gets a new queue pair, and may be used; the receiver does not grant by it before kUp.
  // `made` gets the former resources. False: not now, because flushes use those, `made` has no
  // queue pair for flushes and needs one, or a buffer is being registered.
  bool join(Path& path, PathResources& made, std::uint32_t generation);
  // Whether a new queue pair of the path needs one for flushes as well.
  virtual bool needs_loopback(const Path& path) = 0;
  bool is_up(std::size_t path) const noexcept { return paths_[path].posts; }
  // --- Messages about paths, in-band: comm_in_band.cc ---
  // Whether the other end has written something. Any thread.
  bool has_in_band_news() const noexcept final;
  // The cell, if the other end has written it since the last call. None: it has not, or only a part
  // of the cell is there yet.
  std::optional<wire::InBandCell> read_in_band() noexcept;
  // To be filled before write_in_band(). Null: the comm has none, or it is being written.
  wire::InBandCell* own_cell() noexcept;
  // By which a cell can be written. Null: there is none now.
  Path* in_band_path() noexcept;
  void write_in_band(Path& path);
  // Whether there is a path for new messages of this end: data, or grants.
  virtual bool has_usable_path() const noexcept = 0;
  // After a path has failed: grants again what waits for room. True: the comm must stay alarmed,
  // because some still waits, or buffers must not be granted yet.
  virtual bool regrant_rest() = 0;
  // For the control thread: true if the comm is idle. Until give_back() its paths belong to the
  // control thread, isend and irecv answer "call again", and iflush waits.
  bool take_if_idle() noexcept { return gate_.try_take(); }
  void give_back() noexcept { gate_.give_back(); }

 protected:
  Comm(std::unique_ptr<Connection> connection, std::uint32_t send_depth, const CommOptions& options,
       StatsSlot stats, PathEvents& events) noexcept;
  // Work requests that each queue of a queue pair holds, of which fewer are used. Linux's soft
  // iWARP (siw in 6.1) cannot map the queues of the twelfth connection if they have 256 places,
  // which is what it makes of 192: the test vm-siw fails.
  static constexpr std::uint32_t kQueueDepth = 320;
  // Of Connection::extra. What else an end puts there comes behind.
  static constexpr std::size_t bytes_of_paths(std::size_t paths) noexcept {
    return paths > 1 ? paths * sizeof(Path) : 0;
  }
  // In the control memory, behind the credit ring or its copy, and the area for messages.
  static constexpr std::size_t notices_at(std::size_t paths) noexcept {
    return wire::kCreditRingBytes + (paths > 1 ? sizeof(wire::InBandArea) : 0);
  }
  ~Comm();
  // When the whole object is made: the control thread may serve it.
  void begin_service() noexcept {
    link_->set_alarm(&gate_.word(), CommGate::kLinkHasNews);
    link_->set_user(this);
  }
  // From now on the control thread does not touch the comm.
  void end_service() noexcept;

  Path& path_at(std::size_t index) noexcept { return paths_[index]; }
  // Only of a comm that was made with one path, whether or not that has failed. With several it
  // would be none of them.
  Path& only_path() noexcept { return only_path_; }
  // Or one that has failed before: see keep_records().
  bool has_several_paths() const noexcept { return gate_.has_several_paths(); }
  wire::Rails rails() const noexcept { return rails_; }

  // Polls the path until its completion queue is empty.
  template <class End>
  static void drain(End& end, Path& path);
  template <class End>
  static void drain_all(End& end);

  // A failed completion of a path that is fenced.
  static void on_flushed(Path& path, const ibv_wc& completion) noexcept {
    if (completion.wr_id == work_id::kFence) --path.fence_left;
  }
  // Posts the READs of a fence, and returns how many completions have to come. None: not now,
  // because memory is being registered.
  virtual std::optional<std::uint8_t> read_back(const Path& path) = 0;
  // Makes the records that the comm needs to send or grant again. Called once, when the only path
  // has failed: until then, a comm with one path does without them. False: there is no memory.
  virtual bool keep_records() = 0;
  // From now on the comm counts as one with several paths. False: there is no memory.
  bool begin_records();
  // Posts a work request that completes only if the path works.
  Status post_probe(Path& path, std::uint64_t wr_id);
  Status post_signaled(Path& path, ibv_send_wr& request, const char* doing);
  // Time in which all that is under way on this path should complete. 0: not known.
  virtual std::int64_t expected_ns(const Path& /*path*/) const noexcept { return 0; }
  // The path does not post any more: posts go elsewhere.
  virtual void leave_path(Path& path) = 0;
  // The receiver may grant by the path again.
  virtual void begin_grants(Path& path) = 0;
  // The path is up again, with an empty queue pair.
  virtual void on_joined(Path& path) = 0;
  // Swaps the resources of the path. If the new ones have another device, the keys of the buffers
  // change for the path's rail. False: not now.
  virtual bool swap_resources(Path& path, PathResources& made) = 0;
  // Whether isend or irecv may begin although the comm is alarmed.
  BL_SLOW Errc may_begin(const char* call, bool* may);

  // --- Members in the order in which calls need them ---
  // With many comms, a cache line that a call touches is a cache miss (bench/cost/in_turn.py). The
  // first line is what every call needs, the second begins the only path, and watch_ shares the
  // last one with the first members of the derived class.
  CommGate gate_;
  FreeRequests free_requests_;
  CreditCursor cursor_;  // the sender's; here, so that an isend of a receiver finds no line
  StatsSlot stats_;
  static_assert(sizeof(void*) + sizeof gate_ + sizeof free_requests_ + sizeof cursor_ +
                    sizeof stats_ ==
                kCacheLine);

 private:
  alignas(kCacheLine) Path only_path_;  // unless there are several

 protected:
  // As the control thread has made it. It is destroyed there, too.
  const std::unique_ptr<Connection> owned_;
  Connection& connection_;
  Link* link_;  // connection_.link's
  PathEvents& events_;
  const RegistrationMeans* const registration_;

 private:
  void take_resources(Path& path) noexcept;
  void post_fence_marks(Path& path) noexcept;
  wire::InBandArea* in_band_area() const noexcept;  // null: the other end has no cell
  // Takes what was found, and all that may be left.
  template <class End>
  [[gnu::noinline]] static void absorb_all(End& end, const TestFrame& frame);
  Errc test_while_alarmed(Request& request, int* done, int* sizes);
  // If that was the only reason for the alarm, it is over. `calls` is 1 if this call has entered
  // the gate.
  BL_SLOW bool is_alarmed_after_answer(std::uint64_t calls) noexcept;
  BL_SLOW Errc check_for_stall();
  std::string name_on(const Device& device) const;

  std::mutex making_buffers_;
  std::shared_ptr<RegisteredBuffers> buffers_;  // under that mutex
  const StandbyDevices* const standbys_;

  Path* paths_;  // only_path_, or in Connection::extra
  const Role role_;
  std::uint8_t path_count_;
  std::uint16_t send_depth_;
  wire::Rails rails_;
  bool early_done_;
  const bool waits_for_devices_;
  // When a call last answered the control thread: the open requests, and whether a path worked.
  std::atomic<bool> had_path_{true};
  std::atomic<std::uint64_t> requests_then_{0};
  WaitWatch wait_;

 protected:
  alignas(kCacheLine) StallWatch watch_;
};

BL_INLINED Comm::Credit Comm::look_for_credit() const noexcept {
  const std::uint64_t awaited = cursor_.order();
  const std::uint64_t order = wire::order_in(cursor_.line());
  if (order == awaited) [[likely]]
    return {Credit::kHasCome, awaited};
  const bool has_come = wire::number_of(order ^ awaited) == 0;
  return {has_come || gate_.is_alarmed() ? Credit::kSlow : Credit::kNone, awaited};
}

template <class End>
void Comm::drain(End& end, Path& path) {
  Completions completions;
  int found = 0;
  do {
    found = poll(path.cq, completions);
    if (found != 0) end.absorb(path, completions.data(), found);
  } while (found == kMostCompletions);
}

// Those that are still missing have no completion queue.
template <class End>
void Comm::drain_all(End& end) {
  for (Path& path : end.paths()) {
    if (path.cq != nullptr) drain(end, path);
  }
}

template <class End>
BL_INLINED void Comm::finish(Request& request, int* done, int* sizes) noexcept {
  *done = 1;
  if (sizes != nullptr) {
    sizes[0] = static_cast<int>(request.sizes[0]);
    const std::size_t count = std::is_same_v<End, SendComm> ? 1 : request.count;
    for (std::size_t i = 1; i < count; ++i) sizes[i] = static_cast<int>(request.sizes[i]);
  }
  free_requests_.give_back(request);
  gate_.leave();
}

}  // namespace beeline
