// SPDX-License-Identifier: Apache-2.0
//
// The mailbox through which NCCL's threads and the control thread work together. NCCL's threads
// leave orders in it and pick up results; all other state belongs to the control thread alone.
//
// Threads: one mutex, which is held for moments only: no verbs call and no system call that could
//   wait is made under it. NCCL's threads do not sleep for it. A call that NCCL repeats anyway
//   returns "not yet" if another thread has the mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "plugin/connect/comm/comm_link.h"
#include "plugin/connect/comm/comm_settings.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/comm/path_log.h"
#include "plugin/device/rail_devices.h"
#include "plugin/wire/handle.h"

namespace beeline {

using MadeConnection = std::unique_ptr<Connection>;

// A listener, with the connections that have been made for it and wait for accept().
class Listener {
 public:
  Listener(std::uint32_t number, const wire::Token& token, RailDevices devices,
           const CommSettings& settings)
      : number_(number), token_(token), devices_(devices), settings_(settings) {}

  std::uint32_t number() const noexcept { return number_; }

 private:
  friend class ControlMailbox;
  const std::uint32_t number_;
  const wire::Token token_;
  const RailDevices devices_;
  const CommSettings settings_;
  // Under the mailbox's mutex.
  std::deque<Result<MadeConnection>> arrived_;
  std::int64_t waits_since_ns_ = 0;  // accept() has found nothing since then; 0: it has
  bool was_called_ = false;          // since the control thread has looked
  int idle_rounds_ = 0;  // without a call of accept(), while there is a connection to take
};

// A connect that NCCL has begun.
struct AttemptOrder {
  std::uint32_t comm = 0;
  wire::Handle handle;
  RailDevices devices;
  CommSettings settings = {};
};

// An order about a path of an open comm. Without one, the link only has to be served.
struct LinkOrder {
  std::weak_ptr<CommLink> link;
  std::optional<PathOrder> order;
};

// The work that NCCL's threads leave for the control thread. The mailbox has one such object and
// the control thread another. They are swapped, so that their vectors keep their memory, and NCCL's
// threads rarely allocate.
struct Orders {
  UniqueFd listening;                                     // a new listening socket
  std::vector<std::uint32_t> begun;                       // attempts to start, by comm
  std::vector<std::uint32_t> abandoned;                   // attempts to end, by comm
  std::vector<std::uint32_t> closed;                      // closed listeners, by number
  std::vector<GoneLink> gone;                             // destroyed links
  std::vector<MadeConnection> unclaimed;                  // connections to destroy
  std::vector<CommMemory> comms;                          // closed comms to destroy
  std::vector<LinkOrder> paths;                           // orders of open comms
  std::vector<std::unique_ptr<PathResources>> discarded;  // to destroy
  bool stop = false;

  void clear() noexcept;
  bool is_empty() const noexcept {
    return !listening && begun.empty() && abandoned.empty() && closed.empty() && gone.empty() &&
           unclaimed.empty() && comms.empty() && paths.empty() && discarded.empty() && !stop;
  }
};

class ControlMailbox {
 public:
  static Result<std::shared_ptr<ControlMailbox>> create();
  explicit ControlMailbox(UniqueFd wakeup_fd, std::uint32_t nonce)
      : wakeup_fd_(std::move(wakeup_fd)), nonce_(nonce) {}

  // --- For NCCL's threads ---
  Listener* add_listener(const wire::Token& token, RailDevices devices,
                         const CommSettings& settings);
  // Null if none has arrived yet.
  Result<MadeConnection> take_accepted(Listener& listener);
  void close_listener(Listener* listener);

  // Looks for the attempt whose number connect() has left in the handle's memory. The number may be
  // that of another process, or garbage. A failed attempt is removed when its error is returned.
  struct AttemptState {
    bool is_known = false;
    MadeConnection made;  // null if it is not ready yet
  };
  Result<AttemptState> poll_attempt(std::uint64_t remembered, const wire::Token& token);
  // Returns the number to leave in the handle's memory. Empty if another thread has the mutex: the
  // caller tries again with the next call.
  std::optional<std::uint64_t> add_attempt(AttemptOrder order);

  // For a thread that polls and has got "not yet": it may occupy the processor that the control
  // thread needs.
  void yield_to_control_thread() const noexcept;

  void listen_on(UniqueFd listening);
  // Ends the owner's listeners and attempts, and the connections that nobody has taken from them.
  void reclaim(OwnerId owner);
  void stop() noexcept;

  // --- For any thread ---
  PathLog& path_log() noexcept { return path_log_; }
  void link_gone(const GoneLink& link) noexcept;
  // The control thread destroys the comm. If that thread has ended, the caller does.
  void take_back(CommMemory memory) noexcept;
  // The same for a path of an open comm.
  void discard(std::unique_ptr<PathResources> resources) noexcept;
  // The order is lost if there is no memory for it.
  void order_path(LinkOrder order) noexcept;

  // --- For the control thread ---
  int wakeup_fd() const noexcept { return wakeup_fd_.get(); }
  // Notes the processor that it runs on.
  void note_cpu() noexcept;
  void take_orders(Orders& taken);
  // Returns true if there is nothing to do. From then on the mailbox is not served any more.
  bool leave() noexcept;
  bool has_listeners() const noexcept { return listener_count_ > 0; }
  std::uint32_t next_comm() noexcept { return ++last_comm_; }
  // Empty if the attempt was reclaimed or has failed in the meantime.
  std::optional<AttemptOrder> find_order(std::uint32_t comm);
  struct ListenerFacts {
    RailDevices devices;
    CommSettings settings;
    std::size_t unaccepted = 0;  // connections that wait for accept()
  };
  // Empty if there is no listener with this number and token.
  std::optional<ListenerFacts> find_listener(std::uint32_t number, const wire::Token& token);
  // These return the connection if nobody waits for it any more.
  [[nodiscard]] MadeConnection deliver_accepted(std::uint32_t listener, MadeConnection made);
  [[nodiscard]] MadeConnection deliver_connected(std::uint32_t comm, MadeConnection made);
  void fail_accept(std::uint32_t listener, Error error);
  void fail_connect(std::uint32_t comm, Error error);
  // Whether connect() was called for the attempt since this was last asked.
  bool take_call(std::uint32_t comm) noexcept;
  struct ListenerCalls {
    std::uint32_t listener = 0;
    RailDevices devices;
    std::int64_t waits_since_ns = 0;  // accept() has found nothing since then; 0: it has
    bool was_called = false;          // since this was last asked
  };
  // Returns the calls of accept() of all listeners.
  std::vector<ListenerCalls> take_listener_calls();
  // The control thread calls this at intervals. It ends attempts and arrived connections of
  // kNoOwner that NCCL has not asked for during kIdleRounds calls. A connection whose peer still
  // waits is kept for kAwaitedIdleRounds calls. Calls are counted, and not time, because a process
  // that was stopped has not forgotten anything.
  static constexpr int kIdleRounds = 4;
  static constexpr int kAwaitedIdleRounds = 40;
  void expire();

  // --- For the control plane, which owns the thread ---
  // True from start_serving() to leave().
  bool is_served() noexcept;
  void start_serving() noexcept;
  // The thread cannot be started, or has failed. All callers that wait for it get the error.
  void fail_all(Error error) noexcept;
  // Called once the thread has ended for good. Breaks the cycle of owners: the mailbox owns
  // connections, and their links own the mailbox.
  void clear() noexcept;

 private:
  struct Attempt {
    AttemptOrder order;
    bool was_called = true;  // since the control thread has looked
    int idle_rounds = 0;     // without a call of connect()
    std::optional<Result<MadeConnection>> outcome;
  };
  using Unclaimed = std::vector<MadeConnection>;
  using Attempts = std::unordered_map<std::uint32_t, Attempt>;
  using Listeners = std::unordered_map<std::uint32_t, std::unique_ptr<Listener>>;

  void wake() const noexcept;
  template <class Item>
  void leave_order(std::vector<Item> Orders::*where, Item item) noexcept;
  // The caller of these has locked the mutex.
  Listeners::iterator close_locked(Listeners::iterator listener, Unclaimed& unclaimed);
  Attempts::iterator abandon_locked(Attempts::iterator attempt, Unclaimed& unclaimed);
  // Returns the connections that the caller has to destroy, after unlocking the mutex.
  Unclaimed hand_over_locked(Unclaimed unclaimed);

  const UniqueFd wakeup_fd_;
  const std::uint32_t nonce_;  // distinguishes this process's attempts from those of others
  std::mutex mutex_;
  bool served_ = false;
  std::uint32_t last_listener_ = 0;
  std::atomic<std::uint32_t> last_comm_{0};
  std::atomic<std::size_t> listener_count_{0};
  // The processor of the control thread when it last noted it. Below 0 if unknown.
  std::atomic<int> cpu_{-1};
  Listeners listeners_;
  Attempts attempts_;
  Orders orders_;
  PathLog path_log_;
};

}  // namespace beeline
