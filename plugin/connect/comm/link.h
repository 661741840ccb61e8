// SPDX-License-Identifier: Apache-2.0
//
// What a comm and the control thread know about each other once the handshake is over: the peer's
// name, whether it said goodbye or died, and whether our own device is still there. The comm's
// threads look at it; they never wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace beeline {

// Who is at the other end, for people.
struct PeerName {
  std::string host;
  std::int64_t pid = 0;
  std::string device;  // ibdev, with ":port"

  std::string text() const;   // "h1 (pid 4711) softnic0:1"
  std::string place() const;  // "h1:softnic0:1"
};

class Link {
 public:
  enum class State : std::uint32_t {
    kOpen,        // nothing to tell
    kGoodbye,     // the peer closed its comm; peer_settled() says how far it had come
    kDead,        // the peer's process, host or control channel is gone; cause() says how
    kDeviceGone,  // ours, with everything on it; cause() says how
  };

  virtual ~Link() = default;

  // Acquire: what belongs to the state can be read once the state was seen. Leaves kOpen once, and
  // never changes again.
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  const std::atomic<State>& state_word() const noexcept { return state_; }

  // With kGoodbye: the position of the first line that the peer had not finished when it closed. A
  // receiver's: all sends below it have arrived, or nobody waits for them. A sender's: all its
  // sends below it have completed.
  std::uint32_t peer_settled() const noexcept { return peer_settled_; }

  // With kDead and kDeviceGone: lower-case words, such as "its process ended without goodbye
  // (connection reset)".
  const std::string& cause() const noexcept { return cause_; }

  const PeerName& peer() const noexcept { return peer_; }

  // Tells the peer that this end closes, before its QPs go. Any thread, once; does not wait. When
  // it returns, the message is with the kernel, or queued behind earlier ones.
  virtual void send_goodbye(std::uint32_t settled) noexcept = 0;

  // Tells the peer that this end has failed, which it may have no other way to notice. The words
  // are for its log, on another host, so they name hosts. Any thread may call it; it does not wait.
  virtual void send_failure(const std::string& why) noexcept = 0;

 protected:
  std::atomic<State> state_{State::kOpen};
  std::uint32_t peer_settled_ = 0;
  std::string cause_;
  PeerName peer_;
};

}  // namespace beeline
