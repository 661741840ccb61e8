// SPDX-License-Identifier: Apache-2.0
//
// One control channel: a TCP connection to another process, after both have introduced themselves.
// It carries the handshakes and goodbyes of all comms between the two processes, in both
// directions. If both ends have agreed on that (ResumeTerms), a channel whose connection is lost
// goes on with another one.
// Threads: the control thread. Only the outbox may be used by any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/base/clock.h"
#include "plugin/connect/channel/identity.h"
#include "plugin/connect/channel/link_table.h"
#include "plugin/connect/comm/comm_link.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/socket/outbox.h"
#include "plugin/wire/message.h"

namespace beeline {

enum class Direction : std::uint8_t { kDialed, kAnswered };

// What both ends have told each other so that the channel can be resumed.
struct ResumeTerms {
  wire::Token own_token{};   // by which the peer is recognized
  wire::ResumeOffer theirs;  // where the peer is dialed, and by which token it recognizes this end
};

// None unless both have offered it.
inline std::optional<ResumeTerms> resume_terms(const std::optional<wire::ResumeOffer>& ours,
                                               const std::optional<wire::ResumeOffer>& theirs) {
  if (!ours || !theirs) return std::nullopt;
  return ResumeTerms{.own_token = ours->token, .theirs = *theirs};
}

// A TCP connection whose ends have introduced themselves, before it becomes a channel.
struct Introduced {
  UniqueFd fd;
  ProcessName peer;
  Direction direction = Direction::kDialed;
  std::optional<ResumeTerms> resume;  // none: the channel ends when it is lost
  ClockOffset clock = {};             // of the peer, measured by the end that has dialed
  wire::FrameSplitter input;          // may hold messages that came behind the introduction
};

// A TCP connection with which a channel goes on.
struct NewStream {
  UniqueFd fd;
  wire::FrameSplitter input;
};

class Channel {
 public:
  Channel(std::uint64_t id, Introduced introduced, Poller& poller)
      : id_(id),
        peer_(std::move(introduced.peer)),
        direction_(introduced.direction),
        clock_(introduced.clock),
        born_ns_(now_ns()),
        resume_(std::move(introduced.resume)),
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
  LinkTable& links() noexcept { return links_; }
  const LinkTable& links() const noexcept { return links_; }
  void on_link_gone(const GoneLink& link);
  void on_still_open(const wire::StillOpen& message) const;

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

  // --- The loss of the connection ---

  // Null if the channel ends when its connection is lost.
  const ResumeTerms* resume() const noexcept { return resume_ ? &*resume_ : nullptr; }
  // The channel has no connection, and messages are dropped.
  bool is_lost() const noexcept { return lost_; }
  // It has been, or is.
  bool was_lost() const noexcept { return was_lost_; }
  void lose() noexcept;
  // The channel goes on. Tells the peer how each comm stands.
  void go_on(NewStream stream, Poller::Key key);

  // Of RESUME, in both directions.
  std::uint32_t last_attempt() const noexcept { return last_attempt_; }
  std::uint32_t next_attempt() noexcept { return ++last_attempt_; }
  std::uint32_t peers_last_attempt() const noexcept { return peers_last_attempt_; }
  void note_peers_attempt(std::uint32_t attempt) noexcept {
    if (attempt > peers_last_attempt_) peers_last_attempt_ = attempt;
  }

 private:
  const std::uint64_t id_;
  const ProcessName peer_;
  const Direction direction_;
  const ClockOffset clock_;
  const std::int64_t born_ns_;
  const std::optional<ResumeTerms> resume_;
  wire::FrameSplitter input_;
  const std::shared_ptr<Outbox> outbox_;
  LinkTable links_;
  std::int64_t progress_ns_ = 0;
  bool has_progress_ = false;
  bool closing_ = false;
  bool lost_ = false;
  bool was_lost_ = false;
  std::uint32_t last_attempt_ = 0;
  std::uint32_t peers_last_attempt_ = 0;
};

}  // namespace beeline
