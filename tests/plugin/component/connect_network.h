// SPDX-License-Identifier: Apache-2.0
//
// The network between the control planes of two processes, played by a thread: it forwards all TCP
// connections, and can cut and withhold them. Both processes know only addresses of this network:
// one is in the handle, and the others in HELLO and HELLO_ACK are replaced on the way.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/plugin/component/connect_raw_peer.h"

namespace beeline::test {

inline ControlOptions resuming_options() {
  ControlOptions options = control_options();
  options.resume_channels = true;
  return options;
}

class TestNetwork {
 public:
  // Between the connecting process and the one that listens at this handle, which is changed.
  explicit TestNetwork(Ticket& ticket);
  ~TestNetwork();
  TestNetwork(const TestNetwork&) = delete;
  TestNetwork& operator=(const TestNetwork&) = delete;

  enum class Mode : std::uint8_t {
    kForwards,
    kSilent,  // connections are accepted, and nothing that is sent arrives
    kResets,  // new connections are reset
  };
  void set_mode(Mode mode);
  // What happens to the connections that there are.
  enum class Cut : std::uint8_t {
    kResets,  // both ends are told
    kSilent,  // nothing arrives any more, and no end is told: neither by data nor by TCP
    kHalf,    // the end that has dialed is told, and the other one is not
  };
  void cut(Cut how = Cut::kResets);
  // Resets the connection on which the next message of this type is sent, and does not deliver it.
  void cut_at(wire::MessageType type);
  // Whether that has happened.
  bool has_cut();
  // In kSilent: how many connections have sent something that does not arrive.
  std::size_t held_introductions();
  // How many connections have introduced themselves with HELLO or RESUME.
  int introductions() const { return introductions_; }

 private:
  // One end of a connection: bytes are read from `from` and written to `to`.
  struct Way {
    int from = -1;
    int to = -1;
    bool is_introduced = false;
    wire::FrameSplitter input;
  };
  struct Pair {
    UniqueFd dialed;    // from the process that dials
    UniqueFd answered;  // to the process that is dialed
    std::array<Way, 2> ways;
    bool is_over = false;
  };

  void run();
  void accept(std::size_t end);
  void forward(Way& way, Pair& pair);
  // False: the connection was reset instead.
  bool pass(const wire::Frame& frame, Way& way, Pair& pair);
  // Replaces the addresses in the first frame.
  void introduce(const wire::Frame& frame, Way& way, Pair& pair);
  wire::SocketAddress take_address(std::size_t end, std::optional<wire::ResumeOffer>& offer);

  std::array<UniqueFd, 2> listening_;  // at which the listening process is dialed, and the other
  std::array<wire::SocketAddress, 2> own_;
  std::array<wire::SocketAddress, 2> real_;  // where connections are forwarded to
  std::mutex mutex_;
  std::list<Pair> pairs_;
  std::list<Pair> silent_;  // from which nothing is forwarded any more
  std::optional<wire::MessageType> cut_at_;
  Mode mode_ = Mode::kForwards;
  std::atomic<int> introductions_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace beeline::test
