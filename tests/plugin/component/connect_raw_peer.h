// SPDX-License-Identifier: Apache-2.0
//
// The other end of a control channel, played by the test through a plain socket, so that it can
// also break the protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/fd.h"
#include "plugin/wire/message.h"
#include "tests/plugin/component/connect_rig.h"

namespace beeline::test {

wire::Handle handle_of(Ticket& ticket);

// A valid HELLO for this handle. Each number stands for another process.
wire::Hello hello_for(const wire::Handle& handle, std::uint32_t process = 0);

// The first `size` bytes of a message.
wire::Bytes first_bytes(const wire::Bytes& bytes, std::size_t size);

// The number of descriptors that this process has open.
std::size_t open_descriptors();

class RawPeer {
 public:
  // Connects to the handle's address.
  explicit RawPeer(const wire::Handle& handle);
  // Takes over a connection.
  explicit RawPeer(UniqueFd fd) : fd_(std::move(fd)) {}

  void send(const wire::Bytes& bytes);
  void send(const std::string& text);
  // False: the other end has closed the connection.
  bool try_send(const wire::Bytes& bytes);
  // Sends a HELLO and waits for the HELLO_ACK.
  void introduce(const wire::Hello& hello);
  // Waits until the other end has read everything that was sent before. No other message may be on
  // its way here.
  void sync();
  // Waits for the next frame. Throws if the connection ends instead.
  wire::Frame receive_frame();
  template <class Message>
  Message receive_message() {
    const wire::Frame frame = receive_frame();
    BL_MUST(frame.type == Message::kType);
    auto message = wire::decode<Message>(frame.body);
    BL_MUST(message.has_value());
    return *message;
  }
  // Waits for the end of the connection. Throws if data arrives before.
  void must_be_dropped();
  // The same, ignoring data that arrives before.
  void must_be_dropped_in_the_end();
  bool is_dropped();
  // Resets the connection, as the kernel does when a process is killed with unread input.
  void reset();

 private:
  // False at the end of the connection.
  bool receive_some();

  UniqueFd fd_;
  wire::FrameSplitter input_;
};

// A socket that is not connected yet.
UniqueFd idle_socket();
void dial(const UniqueFd& socket, const wire::Handle& handle);

// A listening process that is played by the test.
class FakeListener {
 public:
  // The first byte of its process identity: 0xff makes it greater than any other, 0 smaller.
  explicit FakeListener(std::uint8_t first_byte = 0xff);

  const wire::ProcessId& process() const { return handle_.process; }
  Ticket& ticket() { return ticket_; }
  // Waits for the next dialer.
  RawPeer answer();
  // Also receives its HELLO and sends the HELLO_ACK.
  RawPeer welcome();

 private:
  UniqueFd listening_;
  wire::Handle handle_;
  Ticket ticket_;
};

// An ACCEPT that fits the CONNECT of a RoCE device, from a queue pair that does not exist.
wire::Accept accept_for(const wire::Connect& connect);

}  // namespace beeline::test
