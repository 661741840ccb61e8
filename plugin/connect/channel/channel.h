// SPDX-License-Identifier: Apache-2.0
//
// One control channel: a TCP connection to another process, after both have introduced themselves.
// It carries the handshakes and goodbyes of all comms between the two processes, in both
// directions. Threads: the control thread. Only the outbox may be used by any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "common/base/clock.h"
#include "plugin/connect/channel/identity.h"
#include "plugin/connect/comm/comm_link.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/socket/outbox.h"
#include "plugin/wire/message.h"

namespace beeline {

enum class Direction : std::uint8_t { kDialed, kAnswered };

// A TCP connection whose ends have introduced themselves, before it becomes a channel.
struct Introduced {
  UniqueFd fd;
  ProcessName peer;
  Direction direction = Direction::kDialed;
  wire::FrameSplitter input;  // may hold messages that came behind the introduction
};

class Channel {
 public:
  Channel(std::uint64_t id, Introduced introduced, Poller& poller)
      : id_(id),
        peer_(std::move(introduced.peer)),
        direction_(introduced.direction),
        born_ns_(now_ns()),
        input_(std::move(introduced.input)),
        outbox_(std::make_shared<Outbox>(std::move(introduced.fd), poller)) {}

  std::uint64_t id() const noexcept { return id_; }
  const ProcessName& peer() const noexcept { return peer_; }
  Direction direction() const noexcept { return direction_; }
  Outbox& outbox() const noexcept { return *outbox_; }
  wire::FrameSplitter& input() noexcept { return input_; }

  template <class Message>
  void send(const Message& message) const {
    outbox_->send(wire::encode(message));
  }

  // Makes the link of a comm whose handshake is over. It ends when the device of a path is lost.
  std::shared_ptr<CommLink> make_link(std::uint32_t ours, std::uint32_t theirs,
                                      std::span<const PathResources> paths,
                                      std::shared_ptr<ControlMailbox> mailbox);
  // Null if there is no such link, or its comm is closed.
  std::shared_ptr<CommLink> find_link(std::uint32_t ours) const;
  void forget_link(std::uint32_t ours) { links_.erase(ours); }
  std::size_t link_count() const noexcept { return links_.size(); }
  // Returns how many links were open until now.
  std::size_t kill_links(const std::string& cause);
  // Ends the links of comms that use this local device, which is gone.
  void lose_device(const DeviceContext& device);

  // Poller::waited_ns() when the last message about a handshake arrived. Such a message shows that
  // the peer works on handshakes.
  void note_progress(std::int64_t waited_ns) noexcept {
    progress_ns_ = waited_ns;
    has_progress_ = true;
  }
  std::int64_t progress_ns() const noexcept { return progress_ns_; }
  // The peer has sent nothing since its introduction, but its first message may be on the way.
  bool is_fresh(std::chrono::milliseconds timeout) const noexcept {
    return !has_progress_ && now_ns() - born_ns_ < timeout.count() * kNsPerMs;
  }

  // This process sends no more, and waits for the peer to close its end.
  bool is_closing() const noexcept { return closing_; }
  void start_closing() noexcept;

 private:
  const std::uint64_t id_;
  const ProcessName peer_;
  const Direction direction_;
  const std::int64_t born_ns_;
  wire::FrameSplitter input_;
  const std::shared_ptr<Outbox> outbox_;
  std::map<std::uint32_t, std::weak_ptr<CommLink>> links_;  // by the local number of the comm
  std::int64_t progress_ns_ = 0;
  bool has_progress_ = false;
  bool closing_ = false;
};

}  // namespace beeline
