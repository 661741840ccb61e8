// SPDX-License-Identifier: Apache-2.0
//
// Measures the connection between a rail of this host and one of another host, over the plugin:
// connects in both directions, exchanges messages, and compares the data that arrives.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tools/doctor/peers/protocol.h"
#include "tools/perf/buffer.h"
#include "tools/perf/recv_end.h"
#include "tools/perf/send_end.h"

namespace beeline::doctor {

class RailProbe {
 public:
  // `must_stop` is asked while the probe waits. All arguments must outlive the probe.
  RailProbe(const perf::Net& net, const perf::Device& device, const perf::RankMemory& memory,
            std::function<bool()> must_stop)
      : net_(net), device_(device), memory_(memory), must_stop_(std::move(must_stop)) {}
  RailProbe(const RailProbe&) = delete;
  RailProbe& operator=(const RailProbe&) = delete;
  ~RailProbe();

  // The handle for the other end.
  Outcome<std::string> listen();
  // Both ends must call it, with the handle of the other one; one of them is the first.
  ProbeResult run(const std::string& peer_handle, bool is_first);

 private:
  Outcome<void> measure(bool is_first, ProbeResult& result);
  Outcome<void> connect(const std::string& peer_handle);
  Outcome<void> prepare_memory();
  Outcome<void> post_receive(std::size_t bytes);
  Outcome<void> post_send(std::size_t bytes);
  Outcome<void> wait_for_receive();
  // The same, and the message must have this size.
  Outcome<void> wait_for_message(std::size_t bytes);
  Outcome<void> wait_for_send();
  // One message each way.
  Outcome<void> exchange(std::size_t bytes, bool is_first);
  // Which bytes of a payload did not arrive. Empty if all did.
  Outcome<std::string> wrong_payload(bool from_first) const;
  Outcome<void> send_stream(ProbeResult& result);
  Outcome<void> send_messages(std::uint64_t count);
  Outcome<void> receive_stream();
  Outcome<void> receive_messages(std::uint64_t count);
  template <class End, class Post>
  Outcome<void> move_messages(std::uint64_t count, End& end, Post&& post);
  Outcome<void> send_number(std::uint64_t number);
  Outcome<std::uint64_t> receive_number();
  // Calls `poll` until it returns true. Fails after a time, or if the probe must stop.
  template <class Poll>
  Outcome<void> repeat(Poll&& poll);

  const perf::Net& net_;
  const perf::Device& device_;
  const perf::RankMemory& memory_;
  std::function<bool()> must_stop_;
  bool is_late_ = false;   // a step has failed because nothing happened in time
  bool is_wrong_ = false;  // something else arrived than was sent
  void* listener_ = nullptr;
  void* send_comm_ = nullptr;
  void* recv_comm_ = nullptr;
  // The ends refer to the buffers. They do not close the comms.
  std::unique_ptr<perf::Buffer> send_buffer_;
  std::unique_ptr<perf::Buffer> recv_buffer_;
  std::unique_ptr<perf::SendEnd> sender_;
  std::unique_ptr<perf::RecvEnd> receiver_;
  void* send_mr_ = nullptr;
  void* recv_mr_ = nullptr;
};

}  // namespace beeline::doctor
