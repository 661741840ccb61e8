// SPDX-License-Identifier: Apache-2.0
//
// One control channel: a TCP connection to another process that has introduced itself. It carries
// all comms of the two, in both directions.
// Threads: the control thread. Only the outbox is everybody's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "plugin/connect/channel/identity.h"
#include "plugin/connect/comm/comm_link.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/socket/outbox.h"
#include "plugin/wire/message.h"

namespace beeline {

enum class Direction : std::uint8_t { kDialed, kAnswered };

// A connection whose ends have introduced themselves, not a channel yet.
struct Introduced {
  UniqueFd fd;
  ProcessName peer;
  Direction direction = Direction::kDialed;
  wire::FrameSplitter input;  // may hold the peer's next words already
};

class Channel {
 public:
  Channel(std::uint64_t id, Introduced introduced, Poller& poller)
      : id_(id),
        peer_(std::move(introduced.peer)),
        direction_(introduced.direction),
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

  // The link of a comm that is made.
  std::shared_ptr<CommLink> make_link(std::uint32_t ours, std::uint32_t theirs,
                                      const PathResources& path,
                                      std::shared_ptr<ControlMailbox> mailbox);
  // Null: there is none, or nobody holds it any more.
  std::shared_ptr<CommLink> find_link(std::uint32_t ours) const;
  void forget_link(std::uint32_t ours) { links_.erase(ours); }
  std::size_t link_count() const noexcept { return links_.size(); }
  // Returns how many died of it.
  std::size_t kill_links(const std::string& cause);
  // Ours, which is gone.
  void lose_device(const DeviceContext& device);

  // Poller::waited_ns() when the last message about a handshake arrived. It shows that the peer
  // works on handshakes.
  void note_progress(std::int64_t waited_ns) noexcept { progress_ns_ = waited_ns; }
  std::int64_t progress_ns() const noexcept { return progress_ns_; }

  // We have nothing more to say, and wait for the peer to agree.
  bool is_closing() const noexcept { return closing_; }
  void start_closing() noexcept;

 private:
  const std::uint64_t id_;
  const ProcessName peer_;
  const Direction direction_;
  wire::FrameSplitter input_;
  const std::shared_ptr<Outbox> outbox_;
  std::map<std::uint32_t, std::weak_ptr<CommLink>> links_;  // by our number
  std::int64_t progress_ns_ = 0;
  bool closing_ = false;
};

}  // namespace beeline
