// SPDX-License-Identifier: Apache-2.0
//
// The counter between NCCL's threads and the control thread. Listeners and results lie here, and
// orders go over it; all else belongs to the control thread alone.
//
// Threads: one mutex, held for moments only: no verbs call, and no system call that could wait.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plugin/base/fd.h"
#include "plugin/base/result.h"
#include "plugin/connect/comm_link.h"
#include "plugin/connect/connection.h"
#include "plugin/wire/handle.h"

namespace beeline {

using MadeConnection = std::unique_ptr<Connection>;

// Where accept() finds what has come.
class Listener {
 public:
  Listener(std::uint32_t number, const wire::Token& token, const Device& device)
      : number_(number), token_(token), device_(&device) {}

  std::uint32_t number() const noexcept { return number_; }

 private:
  friend class Desk;
  const std::uint32_t number_;
  const wire::Token token_;
  const Device* const device_;
  std::deque<Result<MadeConnection>> arrived_;  // of the desk's mutex
};

// A connect that has begun.
struct AttemptOrder {
  std::uint32_t comm = 0;
  wire::Handle handle;
  const Device* device = nullptr;
  std::int64_t deadline_ns = 0;
};

// What the control thread has to do.
struct Orders {
  UniqueFd door;  // a socket that listens
  std::vector<AttemptOrder> attempts;
  std::vector<CommNumbers> gone;          // links
  std::vector<MadeConnection> unclaimed;  // to be destroyed, which takes a while
  bool stop = false;

  bool is_empty() const noexcept {
    return !door && attempts.empty() && gone.empty() && unclaimed.empty() && !stop;
  }
};

class Desk {
 public:
  static Result<std::shared_ptr<Desk>> create();
  explicit Desk(UniqueFd bell, std::uint32_t nonce) : bell_(std::move(bell)), nonce_(nonce) {}

  // --- NCCL's threads ---
  Listener* add_listener(const wire::Token& token, const Device& device);
  // Null: nothing yet.
  Result<MadeConnection> take_accepted(Listener& listener);
  void close_listener(Listener* listener) noexcept;

  // The attempt that the handle's memory remembers, if it is one of ours and for this token.
  std::optional<std::uint32_t> find_attempt(std::uint64_t remembered, const wire::Token& token);
  // Returns what to remember.
  std::uint64_t add_attempt(AttemptOrder order);
  // Null: nothing yet. An attempt that failed is forgotten.
  Result<MadeConnection> take_connected(std::uint32_t comm);

  void open_door(UniqueFd listening);
  void stop() noexcept;

  // --- any thread ---
  void link_gone(const CommNumbers& numbers) noexcept;

  // --- the control thread ---
  int bell() const noexcept { return bell_.get(); }
  Orders take_orders();
  // True: there is nothing to do, and from now on nobody will do it.
  bool leave() noexcept;
  bool has_listeners();
  std::uint32_t next_comm();
  // Null: not invited.
  const Device* find_listener(std::uint32_t number, const wire::Token& token);
  // What comes back is not wanted any more.
  [[nodiscard]] MadeConnection deliver_accepted(std::uint32_t listener, MadeConnection made);
  [[nodiscard]] MadeConnection deliver_connected(std::uint32_t comm, MadeConnection made);
  void fail_accept(std::uint32_t listener, Error error);
  void fail_connect(std::uint32_t comm, Error error);

  // --- the control plane, which owns the thread ---
  // From start_serving() to leave().
  bool is_served() noexcept;
  void start_serving() noexcept;
  // The thread cannot be started, or has failed: whoever waits for it gets the error.
  void fail_all(Error error) noexcept;
  // Once the thread has ended for good. What lies here owns connections, whose links own the desk.
  void clear() noexcept;

 private:
  struct Attempt {
    wire::Token token{};
    std::optional<Result<MadeConnection>> outcome;
  };

  void ring() const noexcept;

  const UniqueFd bell_;
  const std::uint32_t nonce_;  // tells attempts in a handle from those of another process
  std::mutex mutex_;
  bool served_ = false;
  std::uint32_t last_listener_ = 0;
  std::uint32_t last_comm_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Listener>> listeners_;
  std::unordered_map<std::uint32_t, Attempt> attempts_;
  Orders orders_;
};

}  // namespace beeline
