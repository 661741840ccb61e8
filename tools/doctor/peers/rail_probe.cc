// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/rail_probe.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/clock.h"
#include "tools/perf/content.h"

namespace beeline::doctor {
namespace {

// Each step has to show progress within this time. It is longer than a device needs to give up.
constexpr std::int64_t kPatienceNs = 4 * kNsPerSec;
constexpr std::uint64_t kPollsPerLook = 64;

constexpr std::size_t kNumber = sizeof(std::uint64_t);
constexpr std::size_t kPayload = std::size_t{64} << 10;  // several packets of the largest MTU
constexpr std::size_t kMessage = std::size_t{256} << 10;
constexpr std::size_t kDepth = 8;  // messages in flight
constexpr int kRoundTrips = 30;
// A stream that takes at least this long is measured; shorter ones are repeated with more messages.
constexpr std::int64_t kStreamNs = 20 * kNsPerMs;
constexpr std::uint64_t kFirstMessages = 4;
constexpr std::uint64_t kMostStreamed = 1 << 16;

}  // namespace

// The memory is deregistered first, as NCCL does: the plugin may use a registration again for as
// long as it exists, and by then other memory may be at this address.
RailProbe::~RailProbe() {
  if (send_mr_ != nullptr) (void)sender_->deregister(send_mr_);
  if (recv_mr_ != nullptr) (void)receiver_->deregister(recv_mr_);
  sender_.reset();
  receiver_.reset();
  if (send_comm_ != nullptr) (void)net_.calls.closeSend(send_comm_);
  if (recv_comm_ != nullptr) (void)net_.calls.closeRecv(recv_comm_);
  if (listener_ != nullptr) (void)net_.calls.closeListen(listener_);
}

template <class Poll>
Outcome<void> RailProbe::repeat(Poll&& poll) {
  const std::int64_t deadline = now_ns() + kPatienceNs;
  for (std::uint64_t polls = 1;; ++polls) {
    if (BL_TRY(poll())) return {};
    if (polls % kPollsPerLook != 0) continue;
    is_late_ = now_ns() > deadline;
    if (is_late_) return fail(fmt::format("within {} s", kPatienceNs / kNsPerSec));
    if (must_stop_()) return fail("the other end has given up");
    ::sched_yield();
  }
}

Outcome<std::string> RailProbe::listen() {
  std::string handle(NCCL_NET_HANDLE_MAXSIZE, '\0');
  const ncclResult_t result = net_.calls.listen(net_.ctx, device_.index, handle.data(), &listener_);
  if (result != ncclSuccess) return fail(std::string(perf::NetFailure{"listen", result}));
  return handle;
}

ProbeResult RailProbe::run(const std::string& peer_handle, bool is_first) {
  ProbeResult result;
  Outcome<void> done = connect(peer_handle);
  if (!done && is_late_) {
    result.failure = "no connection " + done.error().text;
    return result;
  }
  if (done) done = measure(is_first, result);
  result.is_wrong = is_wrong_;
  if (!done) {
    result.failure =
        is_late_ ? "connected, but no message arrives " + done.error().text : done.error().text;
  }
  return result;
}

Outcome<void> RailProbe::connect(const std::string& peer_handle) {
  // As in NCCL, the same aligned memory at every call: plugins keep structures in it.
  alignas(std::max_align_t) std::array<char, NCCL_NET_HANDLE_MAXSIZE> handle{};
  std::copy_n(peer_handle.begin(), std::min(peer_handle.size(), handle.size()), handle.begin());
  return repeat([&]() -> Outcome<bool> {
    ncclNetDeviceHandle_v12_t* on_device = nullptr;
    if (send_comm_ == nullptr) {
      const ncclResult_t result =
          net_.calls.connect(net_.ctx, device_.index, handle.data(), &send_comm_, &on_device);
      if (result != ncclSuccess) return fail(std::string(perf::NetFailure{"connect", result}));
    }
    if (recv_comm_ == nullptr) {
      const ncclResult_t result = net_.calls.accept(listener_, &recv_comm_, &on_device);
      if (result != ncclSuccess) return fail(std::string(perf::NetFailure{"accept", result}));
    }
    return send_comm_ != nullptr && recv_comm_ != nullptr;
  });
}

Outcome<void> RailProbe::measure(bool is_first, ProbeResult& result) {
  BL_TRY(prepare_memory());
  std::int64_t least_ns = kPatienceNs;
  for (int i = 0; i < kRoundTrips; ++i) {
    const std::int64_t start = now_ns();
    BL_TRY(exchange(kNumber, is_first));
    least_ns = std::min(least_ns, now_ns() - start);
  }
  result.round_trip_us = static_cast<double>(least_ns) / 1e3;
  perf::fill(send_buffer_->stage(), kPayload, perf::content_id(is_first));
  BL_TRY(send_buffer_->store({0, kPayload}));
  BL_TRY(exchange(kPayload, is_first));
  const std::string wrong = BL_TRY(wrong_payload(!is_first));
  is_wrong_ = !wrong.empty();
  if (is_wrong_) return fail(wrong);
  if (is_first) BL_TRY(send_stream(result));
  BL_TRY(receive_stream());
  if (!is_first) BL_TRY(send_stream(result));
  return {};
}

Outcome<void> RailProbe::prepare_memory() {
  send_buffer_ = std::make_unique<perf::Buffer>(BL_TRY(perf::Buffer::make(memory_, kMessage)));
  recv_buffer_ = std::make_unique<perf::Buffer>(BL_TRY(perf::Buffer::make(memory_, kMessage)));
  sender_ = std::make_unique<perf::SendEnd>(net_, send_comm_, "send", kDepth);
  const perf::AfterRecv after = memory_.flushes(perf::FlushChoice::kAuto, device_)
                                    ? perf::AfterRecv::kFlush
                                    : perf::AfterRecv::kNothing;
  receiver_ = std::make_unique<perf::RecvEnd>(net_, recv_comm_, "receive", kDepth, after);
  send_mr_ = BL_TRY(sender_->register_memory(*send_buffer_, kMessage));
  recv_mr_ = BL_TRY(receiver_->register_memory(*recv_buffer_, kMessage));
  return {};
}

Outcome<void> RailProbe::post_receive(std::size_t bytes) {
  perf::RecvGroup group;
  group.add(recv_buffer_->address(), bytes, 0, recv_mr_);
  return repeat([&]() -> Outcome<bool> { return BL_TRY(receiver_->post(group)); });
}

Outcome<void> RailProbe::post_send(std::size_t bytes) {
  return repeat([&]() -> Outcome<bool> {
    return BL_TRY(sender_->post(send_buffer_->address(), bytes, 0, send_mr_));
  });
}

Outcome<void> RailProbe::wait_for_receive() {
  return repeat([&]() -> Outcome<bool> { return BL_TRY(receiver_->poll()); });
}

Outcome<void> RailProbe::wait_for_send() {
  return repeat([&]() -> Outcome<bool> { return BL_TRY(sender_->poll()); });
}

Outcome<void> RailProbe::exchange(std::size_t bytes, bool is_first) {
  BL_TRY(post_receive(bytes));
  if (!is_first) BL_TRY(wait_for_message(bytes));
  BL_TRY(post_send(bytes));
  if (is_first) BL_TRY(wait_for_message(bytes));
  return wait_for_send();
}

Outcome<void> RailProbe::wait_for_message(std::size_t bytes) {
  BL_TRY(wait_for_receive());
  const int size = receiver_->sizes()[0];
  if (size == static_cast<int>(bytes)) return {};
  is_wrong_ = true;
  return fail(fmt::format("a message of {} bytes arrives in place of one of {}", size, bytes));
}

Outcome<std::string> RailProbe::wrong_payload(bool from_first) const {
  const std::uint8_t* const data = BL_TRY(recv_buffer_->fetch({0, kPayload}));
  const perf::Mismatch mismatch = perf::compare(data, kPayload, perf::content_id(from_first));
  if (mismatch.count == 0) return std::string();
  return fmt::format("{} of {} bytes are not those that were sent, the first at {}", mismatch.count,
                     kPayload, mismatch.first);
}

// A number is sent in memory of the host or of the GPU, like all messages.
Outcome<void> RailProbe::send_number(std::uint64_t number) {
  std::memcpy(send_buffer_->stage(), &number, kNumber);
  BL_TRY(send_buffer_->store({0, kNumber}));
  BL_TRY(post_send(kNumber));
  return wait_for_send();
}

Outcome<std::uint64_t> RailProbe::receive_number() {
  BL_TRY(post_receive(kNumber));
  BL_TRY(wait_for_receive());
  std::uint64_t number = 0;
  std::memcpy(&number, BL_TRY(recv_buffer_->fetch({0, kNumber})), kNumber);
  return number;
}

// Before each stream the receiver learns the number of messages, and it answers when all have
// arrived. A stream of none is the last.
Outcome<void> RailProbe::send_stream(ProbeResult& result) {
  std::uint64_t count = kFirstMessages;
  for (;;) {
    BL_TRY(send_number(count));
    const std::int64_t start = now_ns();
    BL_TRY(send_messages(count));
    (void)BL_TRY(receive_number());
    const std::int64_t took = now_ns() - start;
    result.gbytes_per_s = static_cast<double>(count * kMessage) / static_cast<double>(took);
    if (took >= kStreamNs || count >= kMostStreamed) break;
    // Towards the wanted time, with a little more; by no more than eight times, since short streams
    // tell little.
    const auto wanted =
        static_cast<std::uint64_t>(static_cast<double>(count) * 1.2 *
                                   static_cast<double>(kStreamNs) / static_cast<double>(took)) +
        1;
    count = std::min({wanted, count * 8, kMostStreamed});
  }
  return send_number(0);
}

// Keeps as many messages in flight as the end has room for.
template <class End, class Post>
Outcome<void> RailProbe::move_messages(std::uint64_t count, End& end, Post&& post) {
  std::uint64_t posted = 0;
  for (std::uint64_t done = 0; done < count;) {
    BL_TRY(repeat([&]() -> Outcome<bool> {
      const bool is_posted = posted < count && BL_TRY(post());
      const bool is_done = BL_TRY(end.poll());
      posted += is_posted ? 1 : 0;
      done += is_done ? 1 : 0;
      return is_posted || is_done;
    }));
  }
  return {};
}

Outcome<void> RailProbe::send_messages(std::uint64_t count) {
  return move_messages(count, *sender_, [this] {
    return sender_->post(send_buffer_->address(), kMessage, 0, send_mr_);
  });
}

Outcome<void> RailProbe::receive_stream() {
  for (;;) {
    const std::uint64_t count = BL_TRY(receive_number());
    if (count == 0) return {};
    BL_TRY(receive_messages(count));
    BL_TRY(send_number(count));
  }
}

Outcome<void> RailProbe::receive_messages(std::uint64_t count) {
  perf::RecvGroup group;
  group.add(recv_buffer_->address(), kMessage, 0, recv_mr_);
  return move_messages(count, *receiver_, [&] { return receiver_->post(group); });
}

}  // namespace beeline::doctor
