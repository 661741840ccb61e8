// SPDX-License-Identifier: Apache-2.0
//
// The link between the two ends of a comm once the handshake is over: the peer's name, and whether
// the peer has said goodbye, has died, or the local device is gone. The control thread sets this
// state; the comm's threads read it and never wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "plugin/wire/message_fenced.h"

namespace beeline {

// The other end, for log lines.
struct PeerName {
  std::string host;
  std::int64_t pid = 0;
  std::string device;  // the ibdev's name and ":port"

  // "h1 (pid 4711) softnic0:1"
  std::string text() const {
    return host + " (pid " + std::to_string(pid) + ")" + (device.empty() ? "" : " " + device);
  }
  // "h1:softnic0:1"
  std::string place() const { return device.empty() ? host : host + ":" + device; }
};

class Link {
 public:
  enum class State : std::uint32_t {
    kOpen,
    kReports,     // open, and the peer has sent reports about failed paths
    kGoodbye,     // the peer has closed its comm; peer_settled() is the position it had reached
    kDead,        // the peer's process, host or control channel is gone; cause() says how
    kDeviceGone,  // the local device is gone; cause() says how
  };

  virtual ~Link() = default;

  // Once a caller has seen a state, it may read what the state stands for. Only kOpen and kReports
  // change into another.
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool has_ended() const noexcept {
    const State now = state();
    return now != State::kOpen && now != State::kReports;
  }
  const std::atomic<State>& state_word() const noexcept { return state_; }

  // With kGoodbye: the position of the first line that the peer had not finished when it closed. If
  // the peer received, all sends below it have arrived, or nobody waits for them. If it sent, all
  // its sends below it have completed.
  std::uint32_t peer_settled() const noexcept { return peer_settled_; }

  // With kDead and kDeviceGone: a clause in lower case, such as "its process ended without goodbye
  // (connection reset)".
  const std::string& cause() const noexcept { return cause_; }

  const PeerName& peer() const noexcept { return peer_; }

  // A counter that grows when a work request of the comm completes or a message arrives; may be
  // null. While the control channel is lost, it shows that the peer is there. It must outlive the
  // link.
  void set_progress(const std::uint64_t* counter) noexcept { progress_ = counter; }
  // 0 if there is no counter.
  std::uint64_t progress() const noexcept {
    const std::uint64_t* const counter = progress_;
    if (counter == nullptr) return 0;
    return std::atomic_ref(const_cast<std::uint64_t&>(*counter)).load(std::memory_order_relaxed);
  }

  // Tells the peer that this end closes, before its queue pairs go. Any thread may call it, once.
  // It does not wait: when it returns, the message is with the kernel, or queued behind earlier
  // ones.
  virtual void send_goodbye(std::uint32_t settled) noexcept = 0;

  // Tells the peer that this end has failed, which it may have no other way to notice. The text
  // goes to the log of another host, so it names hosts. Any thread may call it. It does not wait.
  virtual void send_failure(const std::string& why) noexcept = 0;

  // Whether the two ends tell each other about failed paths. If not, a failed path ends the comm.
  virtual bool exchanges_reports() const noexcept = 0;
  // Any thread may call it. It does not wait. Only the end of the peer can lose the report.
  virtual void send_report(wire::Fenced report) noexcept = 0;
  // The next report of the peer, in their order. Once there is none, the state is not kReports.
  virtual std::optional<wire::Fenced> take_report() noexcept = 0;

 protected:
  std::atomic<State> state_{State::kOpen};
  std::uint32_t peer_settled_ = 0;
  std::string cause_;
  PeerName peer_;
  std::atomic<const std::uint64_t*> progress_{nullptr};
};

}  // namespace beeline
