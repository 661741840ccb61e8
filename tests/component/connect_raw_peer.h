// SPDX-License-Identifier: Apache-2.0
//
// Somebody who speaks to a control plane through a plain socket, by the protocol or not.
#pragma once

#include <optional>
#include <string>

#include "common/base/fd.h"
#include "plugin/wire/message.h"
#include "tests/component/connect_rig.h"

namespace beeline::test {

wire::Handle handle_of(Ticket& ticket);

// The HELLO of a dialer that has the token. Each number stands for another process.
wire::Hello hello_for(const wire::Handle& handle, std::uint32_t process = 0);

// The beginning of a message that is cut off after `size` bytes.
wire::Bytes first_bytes(const wire::Bytes& bytes, std::size_t size);

// Files, sockets and all else that this process has open.
std::size_t open_descriptors();

class RawPeer {
 public:
  // Dials where the handle says.
  explicit RawPeer(const wire::Handle& handle);
  // Takes over a connection.
  explicit RawPeer(UniqueFd fd) : fd_(std::move(fd)) {}

  void send(const wire::Bytes& bytes);
  void send(const std::string& text);
  // False: the other end has hung up.
  bool try_send(const wire::Bytes& bytes);
  // Introduces itself, and is welcome.
  void introduce(const wire::Hello& hello);
  // When it returns, all that was said before has been heard; nothing else may be on its way.
  void sync();
  // Waits for the next frame. Throws when the connection ends instead.
  wire::Frame receive_frame();
  template <class Message>
  Message receive_message() {
    const wire::Frame frame = receive_frame();
    BL_MUST(frame.type == Message::kType);
    auto message = wire::decode<Message>(frame.body);
    BL_MUST(message.has_value());
    return *message;
  }
  // Waits for the end of the connection; throws when something is said before.
  void must_be_dropped();
  // The same, whatever is said before.
  void must_be_dropped_in_the_end();
  bool is_dropped();
  // Ends it at once, as the kernel of a killed process does when input is left over.
  void reset();

 private:
  // False at the end.
  bool receive_some();

  UniqueFd fd_;
  wire::FrameSplitter input_;
};

// A client's socket that has not dialed yet.
UniqueFd idle_socket();
void dial(const UniqueFd& socket, const wire::Handle& handle);

// A process that listens, and is played by the test.
class FakeListener {
 public:
  // Its process id's first byte: 0xff is greater than any other, 0 smaller.
  explicit FakeListener(std::uint8_t first_byte = 0xff);

  const wire::ProcessId& process() const { return handle_.process; }
  Ticket& ticket() { return ticket_; }
  // Waits for the next dialer.
  RawPeer answer();
  // Takes its HELLO, too, and welcomes it.
  RawPeer welcome();

 private:
  UniqueFd listening_;
  wire::Handle handle_;
  Ticket ticket_;
};

// An ACCEPT that fits a CONNECT of a RoCE device, from a queue pair that is nowhere.
wire::Accept accept_for(const wire::Connect& connect);

}  // namespace beeline::test
