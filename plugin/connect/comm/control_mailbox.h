// SPDX-License-Identifier: Apache-2.0
//
// The counter between NCCL's threads and the control thread. Listeners and results lie here, and
// orders go over it; all else belongs to the control thread alone.
//
// Threads: one mutex, held for moments only: no verbs call, and no system call that could wait.
// NCCL's threads do not sleep over it: what can be asked again answers "not yet" instead.
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
#include "plugin/wire/handle.h"

namespace beeline {

using MadeConnection = std::unique_ptr<Connection>;

// Where accept() finds what has come.
class Listener {
 public:
  Listener(std::uint32_t number, const wire::Token& token, const Device& device,
           const CommSettings& settings)
      : number_(number), token_(token), device_(&device), settings_(settings) {}

  std::uint32_t number() const noexcept { return number_; }

 private:
  friend class ControlMailbox;
  const std::uint32_t number_;
  const wire::Token token_;
  const Device* const device_;
  const CommSettings settings_;
  // Of the mailbox's mutex.
  std::deque<Result<MadeConnection>> arrived_;
  int idle_rounds_ = 0;  // since somebody asked, while there was something to take
};

// A connect that has begun.
struct AttemptOrder {
  std::uint32_t comm = 0;
  wire::Handle handle;
  const Device* device = nullptr;
  CommSettings settings = {};
};

// What the control thread has to do. The mailbox and the control thread have one each, and exchange
// them, so that their memory is used again. A thread that frees what another got may have to wait
// for that one's allocator, and one that gets more for the kernel; NCCL's must not.
struct Orders {
  UniqueFd listening;                     // a socket that listens
  std::vector<std::uint32_t> begun;       // attempts, by comm
  std::vector<std::uint32_t> abandoned;   // attempts, by comm
  std::vector<std::uint32_t> closed;      // listeners, by number
  std::vector<CommNumbers> gone;          // links
  std::vector<MadeConnection> unclaimed;  // to be destroyed, which takes a while
  std::vector<CommMemory> comms;          // closed; to be destroyed, which takes a while
  bool stop = false;

  void clear() noexcept;
  bool is_empty() const noexcept {
    return !listening && begun.empty() && abandoned.empty() && closed.empty() && gone.empty() &&
           unclaimed.empty() && comms.empty() && !stop;
  }
};

class ControlMailbox {
 public:
  static Result<std::shared_ptr<ControlMailbox>> create();
  explicit ControlMailbox(UniqueFd wakeup_fd, std::uint32_t nonce)
      : wakeup_fd_(std::move(wakeup_fd)), nonce_(nonce) {}

  // --- NCCL's threads ---
  Listener* add_listener(const wire::Token& token, const Device& device,
                         const CommSettings& settings);
  // Null: nothing yet.
  Result<MadeConnection> take_accepted(Listener& listener);
  void close_listener(Listener* listener);

  // The attempt that the handle's memory remembers, if it is one of ours and for this token. One
  // that failed is forgotten with this answer.
  struct Inquiry {
    bool is_known = false;
    MadeConnection made;  // null: nothing yet
  };
  Result<Inquiry> inquire(std::uint64_t remembered, const wire::Token& token);
  // Returns what to remember. Nothing: not now.
  std::optional<std::uint64_t> add_attempt(AttemptOrder order);

  // Called by a thread that polls and got "not yet". It may be running on the processor that the
  // control thread needs.
  void yield_to_control_thread() const noexcept;

  void listen_on(UniqueFd listening);
  // Gives up its listeners, its attempts, and what was made for them and is not taken.
  void reclaim(OwnerId owner);
  void stop() noexcept;

  // --- any thread ---
  void link_gone(const CommNumbers& numbers) noexcept;
  // The control thread destroys the comm. If that thread has ended, the caller does.
  void take_back(CommMemory memory) noexcept;

  // --- the control thread ---
  int wakeup_fd() const noexcept { return wakeup_fd_.get(); }
  // The processor that it runs on.
  void note_cpu() noexcept;
  // Into what has been cleared.
  void take_orders(Orders& taken);
  // True: there is nothing to do, and from now on nobody will do it.
  bool leave() noexcept;
  bool has_listeners() const noexcept { return listener_count_ > 0; }
  std::uint32_t next_comm() noexcept { return ++last_comm_; }
  // Nothing: it was reclaimed in the meantime.
  std::optional<AttemptOrder> find_order(std::uint32_t comm);
  struct Invited {
    const Device* device = nullptr;
    CommSettings settings;
    std::size_t unaccepted = 0;  // which arrived earlier
  };
  // Nothing: not invited.
  std::optional<Invited> find_listener(std::uint32_t number, const wire::Token& token);
  // What comes back is not wanted any more.
  [[nodiscard]] MadeConnection deliver_accepted(std::uint32_t listener, MadeConnection made);
  [[nodiscard]] MadeConnection deliver_connected(std::uint32_t comm, MadeConnection made);
  void fail_accept(std::uint32_t listener, Error error);
  void fail_connect(std::uint32_t comm, Error error);
  // Called at intervals: gives up what belongs to kNobody and was not asked for in kIdleRounds of
  // them. Rounds and not a clock: a process that was stopped has not forgotten anything. Who waits
  // at the other end of a connection that nobody accepts may wait for long.
  static constexpr int kIdleRounds = 4;
  static constexpr int kPatientRounds = 40;
  void expire();

  // --- the control plane, which owns the thread ---
  // From start_serving() to leave().
  bool is_served() noexcept;
  void start_serving() noexcept;
  // The thread cannot be started, or has failed: whoever waits for it gets the error.
  void fail_all(Error error) noexcept;
  // Once the thread has ended for good. What lies here owns connections, whose links own the
  // mailbox.
  void clear() noexcept;

 private:
  struct Attempt {
    AttemptOrder order;
    int idle_rounds = 0;  // since somebody asked
    std::optional<Result<MadeConnection>> outcome;
  };
  using Unclaimed = std::vector<MadeConnection>;
  using Attempts = std::unordered_map<std::uint32_t, Attempt>;
  using Listeners = std::unordered_map<std::uint32_t, std::unique_ptr<Listener>>;

  void wake() const noexcept;
  // The caller holds the mutex for these.
  Listeners::iterator close_locked(Listeners::iterator listener, Unclaimed& unclaimed);
  Attempts::iterator abandon_locked(Attempts::iterator attempt, Unclaimed& unclaimed);
  // What comes back is for the caller to destroy, without the mutex.
  Unclaimed hand_over_locked(Unclaimed unclaimed);

  const UniqueFd wakeup_fd_;
  const std::uint32_t nonce_;  // tells attempts in a handle from those of another process
  std::mutex mutex_;
  bool served_ = false;
  std::uint32_t last_listener_ = 0;
  std::atomic<std::uint32_t> last_comm_{0};
  std::atomic<std::size_t> listener_count_{0};
  // The processor of the control thread when it last looked; below 0: unknown.
  std::atomic<int> cpu_{-1};
  Listeners listeners_;
  Attempts attempts_;
  Orders orders_;
};

}  // namespace beeline
