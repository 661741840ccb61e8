// SPDX-License-Identifier: Apache-2.0
//
// A sending and a receiving comm in one process, connected over softnic without a handshake. The
// test decides when the peer says goodbye or dies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/device/device_table.h"
#include "plugin/memory/mr_cache.h"
#include "plugin/recovery/guarded.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "tests/support/verbs_fixture.h"

namespace beeline::test {

class FakeLink final : public Link {
 public:
  FakeLink() { peer_ = {.host = "faraway", .pid = 4711, .device = "softnic9:1"}; }

  void send_goodbye(std::uint32_t settled) noexcept override { said = settled; }
  void send_failure(const std::string& why) noexcept override { failure = why; }
  void tell(PathNews /*news*/) noexcept override {}
  void tell_end(const std::string& line) noexcept override { BL_WARN("%s", line.c_str()); }

  // These do what the control thread would do.
  void peer_says_goodbye(std::uint32_t settled) {
    peer_settled_ = settled;
    set_state(State::kGoodbye);
  }
  void peer_dies(const std::string& cause) {
    cause_ = cause;
    set_state(State::kDead);
  }
  void device_goes(const std::string& cause) {
    cause_ = cause;
    set_state(State::kDeviceGone);
  }

  bool exchanges_reports() const noexcept override { return false; }
  wire::Bytes send_about_path(PathMessage /*message*/) noexcept override { return {}; }
  bool has_channel() noexcept override { return true; }
  void order(PathOrder order) noexcept override {
    if (const auto* const fence = std::get_if<FencePath>(&order.what)) (*fence)->carry_out();
  }
  void discard(std::unique_ptr<PathResources> /*resources*/) noexcept override {}
  std::optional<PathMail> take_mail() noexcept override { return std::nullopt; }

  std::optional<std::uint32_t> said;
  std::string failure;

 private:
  void ask_for_service() noexcept override {}
};

struct TransferOptions {
  std::size_t paths = 1;
  std::size_t missing_paths = 0;  // planned besides, and not connected
  Notify notify = Notify::kImmediate;
  std::size_t routed_above = 8192;
  std::uint32_t largest_write = 0;  // 0: what the device can
  std::int64_t stall_ns = 0;        // 0: wait for ever
  PkeyChoice pkey = {};             // of the loopback queue pair
};

// A path whose queue pair is in RESET, and Connection::extra for such a plan.
PathResources make_unconnected_path(const Device& device, const CommPlan& plan);
CommMemory extra_memory(const CommPlan& plan);

// Registered memory.
class Storage {
 public:
  // `caches` has one for each rail.
  Storage(std::span<const std::unique_ptr<MrCache>> caches, std::size_t size, unsigned char fill);

  unsigned char* data() noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }
  const MemoryHandle& handle() const noexcept { return handle_; }
  void deregister() { handle_.registrations.clear(); }
  // As if this rail had refused to register the memory.
  void leave_out(std::size_t rail);

 private:
  std::vector<unsigned char> bytes_;
  MemoryHandle handle_;
};

inline bool is_equal(Storage& a, Storage& b, std::size_t size) {
  return std::equal(a.data(), a.data() + size, b.data());
}

// One call each. Null or false means "call again".
Result<Request*> isend(SendComm& comm, Storage& from, std::size_t size, int tag,
                       std::size_t at = 0);
Result<Request*> irecv(RecvComm& comm, std::span<const ReceiveBuffer> buffers,
                       Need need = Need::kArrival);
Result<bool> test_once(Request& request, int* sizes);

// Has the comm take its completions, as a call of NCCL's does.
template <class End>
void collect(End& comm) {
  comm.gate().enter();
  comm.collect();
  comm.gate().leave();
}

class TransferRig {
 public:
  explicit TransferRig(const TransferOptions& options = {});

  SendComm& sender() { return *sender_; }
  RecvComm& receiver() { return *receiver_; }
  FakeLink& sender_link() { return *sender_link_; }
  FakeLink& receiver_link() { return *receiver_link_; }
  // The sender's ring of credit lines.
  wire::CreditLine* ring() { return ring_; }
  void close_sender() {
    sender_->close();
    sender_.reset();
  }
  void close_receiver() {
    receiver_->close();
    receiver_.reset();
  }
  const TestFabric& fabric() const { return fabric_; }

  Storage storage(std::size_t size, unsigned char fill = 0) { return Storage(caches_, size, fill); }

  // Calls isend until there is a request. Throws if that takes too long, or fails.
  Request* send(Storage& from, std::size_t size, int tag, std::size_t at = 0);
  Request* receive(Storage& into, std::size_t capacity, int tag, std::size_t at = 0);
  // Tests the request until it is done, and returns its size.
  int finish(Request* request);
  std::vector<int> finish_all(Request* request, std::size_t count);

 private:
  void connect(const TransferOptions& options);

  TestFabric fabric_;
  verbs::Api api_;
  std::unique_ptr<DeviceTable> table_;
  Device device_;                                 // a copy, whose capabilities the test may change
  std::vector<std::unique_ptr<MrCache>> caches_;  // by rail
  std::shared_ptr<FakeLink> sender_link_ = std::make_shared<FakeLink>();
  std::shared_ptr<FakeLink> receiver_link_ = std::make_shared<FakeLink>();
  wire::CreditLine* ring_ = nullptr;
  StatsPage page_ = StatsPage::open({.directory = {}, .shown = false});
  std::unique_ptr<Guarded<SendComm>> sender_;
  std::unique_ptr<Guarded<RecvComm>> receiver_;
};

}  // namespace beeline::test
