// SPDX-License-Identifier: Apache-2.0
//
// The link between the two ends of a comm once the handshake is over: the peer's name, and whether
// the peer has said goodbye, has died, or the local device is gone. The control thread sets this
// state; the comm's threads read it and never wait for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/problem.h"
#include "common/check/assert.h"
#include "plugin/connect/comm/path_mail.h"
#include "plugin/connect/comm/path_news.h"
#include "plugin/connect/comm/waiting.h"
#include "plugin/connect/socket/lock_without_sleeping.h"

namespace beeline {

// The other end, for log lines.
struct PeerName {
  std::string host;
  std::int64_t pid = 0;
  std::string device;  // the ibdev's name and ":port"
  ClockOffset clock = {};

  // "h1 (pid 4711) softnic0:1"
  std::string text() const {
    return host + " (pid " + std::to_string(pid) + ")" + (device.empty() ? "" : " " + device);
  }
  // "h1:softnic0:1"
  std::string place() const { return device.empty() ? host : host + ":" + device; }
};

// The buffers that NCCL has registered with a comm.
class RailBuffers {
 public:
  virtual ~RailBuffers() = default;
  // For the control thread, before a path of the rail is made with that device: registers all
  // buffers. If `needs_all`, the first refusal is an error; otherwise such buffers do not use the
  // rail. Takes long.
  virtual Outcome<void> prepare(std::size_t rail, const Device& device, bool needs_all) = 0;
};

// A comm, as the control thread calls it while NCCL makes no call for it.
class LinkUser {
 public:
  // Does what the comm's next call would do about failed paths. False: the comm is in use, or waits
  // for its devices, and has to be served again in a moment. True: nothing is to be done before
  // Link::due_ns(), unless there is news.
  virtual bool serve_if_idle() noexcept = 0;
  virtual std::shared_ptr<RailBuffers> rail_buffers() = 0;
  // Whether the comm goes on if all its devices are gone: others stand in, or they may come back.
  virtual bool can_lose_devices() const noexcept = 0;
  // If nothing is under way that the peer would acknowledge: asks its devices for a sign of life.
  virtual void ask_peer() noexcept = 0;
  // Whether the peer has written a message about a path into this end's memory, so that the comm
  // has to be served. May be called while the comm is in use.
  virtual bool has_in_band_news() const noexcept = 0;
  // Says what the comm waits for, as seen from outside. May be called while the comm is in use.
  virtual Waiting look_at_wait(std::int64_t now_ns) noexcept = 0;
  // For logs: "sender on h1, device softnic0:1, to peer h2 (pid 4711) softnic1:1".
  virtual std::string name() const = 0;

 protected:
  ~LinkUser() = default;
};

class Link {
 public:
  enum class State : std::uint32_t {
    kOpen,
    kPathNews,    // open, and there is something to do about a path: mail, a port's event, or the
                  // time
    kGoodbye,     // the peer has closed its comm; peer_settled() is the position it had reached
    kDead,        // the peer's process, host or control channel is gone; cause() says how
    kDeviceGone,  // the local device is gone; cause() says how
  };

  virtual ~Link() = default;

  // Once a caller has seen a state, it may read what the state stands for.
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool has_ended() const noexcept {
    const State now = state();
    return now != State::kOpen && now != State::kPathNews;
  }
  // From now on this bit of the word is set while the state is not kOpen, so that the comm need not
  // look here. A null word ends that. Once this function has returned, nobody writes to the word of
  // the call before, and its owner may destroy it.
  void set_alarm(std::atomic<std::uint32_t>* word, std::uint32_t bit) noexcept {
    {
      const auto lock = lock_without_sleeping(alarm_mutex_);
      alarm_ = word;
      alarm_bit_ = bit;
    }
    show_state();
  }

  // With kGoodbye: the position of the first line that the peer had not finished when it closed. If
  // the peer received, all sends below it have arrived, or nobody waits for them. If it sent, all
  // its sends below it have completed.
  std::uint32_t peer_settled() const noexcept { return peer_settled_; }

  // With kDead and kDeviceGone: a clause in lower case, such as "its process ended without goodbye
  // (connection reset)".
  const std::string& cause() const noexcept { return cause_; }

  const PeerName& peer() const noexcept { return peer_; }
  // By which this process and the peer know the comm. 0: the link has none.
  std::uint32_t number() const noexcept { return number_; }
  std::uint32_t peer_number() const noexcept { return peer_number_; }

  // A counter that grows when a work request of the comm completes or a message arrives; may be
  // null. While the control channel is lost, it shows that the peer is there. It must outlive the
  // link.
  void set_progress(const std::uint64_t* counter) noexcept { progress_ = counter; }
  // Something has come from the peer that the counter does not count. Any thread may call it.
  void note_heard() noexcept { heard_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t progress() const noexcept {
    const std::uint64_t* const counter = progress_;
    const std::uint64_t heard = heard_.load(std::memory_order_relaxed);
    if (counter == nullptr) return heard;
    return heard +
           std::atomic_ref(const_cast<std::uint64_t&>(*counter)).load(std::memory_order_relaxed);
  }

  // Tells the peer that this end closes, before its queue pairs go. Any thread may call it, once.
  // It does not wait: when it returns, the message is with the kernel, or queued behind earlier
  // ones.
  virtual void send_goodbye(std::uint32_t settled) noexcept = 0;

  // Tells the peer that this end has failed, which it may have no other way to notice. The text
  // goes to the log of another host, so it names hosts. Any thread may call it. It does not wait.
  virtual void send_failure(const std::string& why) noexcept = 0;

  // For the log of the process, in which many connections may have the same news. Link sets
  // PathNews::connection. Any thread may call it. It does not wait.
  virtual void tell(PathNews news) noexcept = 0;
  // The comm has ended with an error. `line` is for the log.
  virtual void tell_end(const std::string& line) noexcept = 0;

  // --- The repair of paths ---

  // Whether the two ends tell each other about failed paths. If not, a failed path ends the comm.
  virtual bool exchanges_reports() const noexcept = 0;
  // Tells the peer. Any thread may call it. It does not wait. The message may be lost. Returns its
  // bytes, which may travel in-band as well; none: the peer need not hear it any more, or there is
  // no memory.
  virtual wire::Bytes send_about_path(PathMessage message) noexcept = 0;
  // Whether the control channel to the peer is there, as far as is known.
  virtual bool has_channel() noexcept = 0;
  // Asks the control thread. The result comes as mail.
  virtual void order(PathOrder order) noexcept = 0;
  // Has the control thread destroy these.
  virtual void discard(std::unique_ptr<PathResources> resources) noexcept = 0;
  // The next message or result. Once there is none, the state is not kPathNews, and the caller
  // looks at the ports and at the clock.
  virtual std::optional<PathMail> take_mail() noexcept = 0;
  // When the comm has to be served although there is no news: the control thread sees to that.
  static constexpr std::int64_t kNever = INT64_MAX;
  void set_due(std::int64_t when_ns) noexcept {
    const std::int64_t before = due_ns_.exchange(when_ns, std::memory_order_relaxed);
    if (when_ns < before) ask_for_service();
  }
  std::int64_t due_ns() const noexcept { return due_ns_.load(std::memory_order_relaxed); }

  // A null user ends that: once this function has returned, the control thread is not inside the
  // former user, and will not enter it again.
  void set_user(LinkUser* user) noexcept {
    const std::lock_guard lock(user_mutex_);
    BL_ASSERT(user == nullptr || user_ == nullptr, "a link has one user");
    user_ = user;
    if (user == nullptr) due_ns_.store(kNever, std::memory_order_relaxed);
  }
  // For the control thread. Returns what serve_if_idle() returns.
  bool serve() noexcept {
    const std::lock_guard lock(user_mutex_);
    return user_ == nullptr || user_->serve_if_idle();
  }
  // For the control thread, as the next ones. A link without a user waits for nothing.
  Waiting look_at_wait(std::int64_t now_ns) noexcept {
    const std::lock_guard lock(user_mutex_);
    return user_ == nullptr ? Waiting{} : user_->look_at_wait(now_ns);
  }
  void ask_peer() noexcept {
    const std::lock_guard lock(user_mutex_);
    if (user_ != nullptr && !has_ended()) user_->ask_peer();
  }
  bool has_in_band_news() noexcept {
    const std::lock_guard lock(user_mutex_);
    return user_ != nullptr && user_->has_in_band_news();
  }
  std::string user_name() {
    const std::lock_guard lock(user_mutex_);
    return user_ == nullptr ? "" : user_->name();
  }
  // Null: the comm is being closed.
  std::shared_ptr<RailBuffers> rail_buffers() {
    const std::lock_guard lock(user_mutex_);
    return user_ == nullptr ? nullptr : user_->rail_buffers();
  }
  bool can_lose_devices() noexcept {
    const std::lock_guard lock(user_mutex_);
    return user_ != nullptr && user_->can_lose_devices();
  }

 protected:
  // Has the control thread begin to look at due_ns().
  virtual void ask_for_service() noexcept = 0;

  void set_state(State state) noexcept {
    BL_ASSERT(!has_ended(), "a link ends once");
    state_.store(state, std::memory_order_release);
    show_state();
  }
  // Does nothing if the state is not `from`.
  void change_state(State from, State to) noexcept {
    if (state_.compare_exchange_strong(from, to)) show_state();
  }

  std::uint32_t peer_settled_ = 0;
  std::string cause_;
  PeerName peer_;
  std::uint32_t number_ = 0;
  std::uint32_t peer_number_ = 0;
  std::atomic<const std::uint64_t*> progress_{nullptr};
  std::atomic<std::uint64_t> heard_{0};

 private:
  // Reads the state under the mutex, so that of two threads that have changed it, the later to come
  // here shows the last change. The mutex is held for a few instructions.
  void show_state() noexcept {
    const auto lock = lock_without_sleeping(alarm_mutex_);
    if (alarm_ == nullptr) return;
    if (state() == State::kOpen) {
      alarm_->fetch_and(~alarm_bit_);
    } else {
      alarm_->fetch_or(alarm_bit_);
    }
  }

  std::atomic<State> state_{State::kOpen};
  std::mutex alarm_mutex_;
  std::atomic<std::uint32_t>* alarm_ = nullptr;
  std::uint32_t alarm_bit_ = 0;
  std::mutex user_mutex_;
  LinkUser* user_ = nullptr;
  std::atomic<std::int64_t> due_ns_{kNever};
};

}  // namespace beeline
