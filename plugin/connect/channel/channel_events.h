// SPDX-License-Identifier: Apache-2.0
//
// The interface through which dials, inbound handshakes and open channels report to the control
// loop and ask it for decisions.
// Threads: the control thread makes all calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/connect/channel/channel.h"

namespace beeline {

// The listener by whose number and token a dial introduces itself.
struct DialTarget {
  std::uint32_t comm = 0;  // the connect that waits for the channel
  wire::Handle handle;
};

class ChannelEvents {
 public:
  // --- Introductions ---
  // What to tell a peer so that it can resume the channel. None: the channel is not to be resumed.
  virtual std::optional<wire::ResumeOffer> make_resume_offer() = 0;

  // --- Dials ---
  // A connect that waits for a channel to this process. Empty if none waits.
  virtual std::optional<DialTarget> find_dial_target(const wire::ProcessId& process) = 0;
  // The peer refused: it has no listener with this number and token.
  virtual void on_unknown_listener(std::uint32_t comm, const std::string& text) = 0;
  virtual void on_unreachable(const wire::ProcessId& process, const Error& error,
                              const std::string& text) = 0;

  // --- Inbound handshakes ---
  // Empty if the peer may have a channel, otherwise the answer to send.
  virtual std::optional<wire::Refuse> check_hello(const wire::Hello& hello) = 0;

  // --- Both ---
  virtual void on_introduced(Introduced introduced) = 0;

  // --- Open channels ---
  // An error ends the channel.
  virtual Status on_message(Channel& channel, const wire::Frame& frame) = 0;
  // The channel is lost, and its peer is being dialed. Messages of handshakes may be lost with it.
  virtual void on_channel_lost(Channel& channel, const std::string& cause) = 0;
  virtual void on_channel_back(Channel& channel) = 0;
  // The channel has ended and its links know it. Handshakes that use it must end, too.
  virtual void on_channel_end(Channel& channel, const std::string& cause) = 0;
  virtual bool has_handshake_on(const Channel& channel) const = 0;
  // Whether none of this process's ports works by which its comms reach the peer.
  virtual bool are_ports_down(const Channel& channel) = 0;

 protected:
  ~ChannelEvents() = default;
};

}  // namespace beeline
