// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/application.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/base/clock.h"
#include "plugin/abi/calls.h"

namespace beeline::simulation {
namespace {

constexpr std::uint64_t kDrawsOfGroups = 0x3000;
constexpr std::size_t kSendsAtOnce = 24;
constexpr std::uint32_t kTestsPerLook = 64;  // StallWatch::kTestsPerLook
constexpr std::uint32_t kMostTests = 6;      // of a reaction, or little more
// Each test of a comm that is alarmed looks at its recovery, which takes ten times as long. The
// silence of a path is measured all the same: of the time between two looks, 100 ms count.
constexpr std::int64_t kLooksWhileAlarmed = 80 * kMs;

// As runtime/net.cc does it.
template <class Made>
Made* make_comm(std::unique_ptr<Connection> connection, const CommOptions& options) {
  std::byte* const place = connection->comm.release();
  return new (place) Made(std::move(connection), options, StatsSlot{});
}

template <class Made>
void destroy(std::byte* memory) noexcept {
  std::destroy_at(reinterpret_cast<Made*>(memory));
}

template <class Made>
void give_back(Process& process, Made* comm) {
  process.mailbox()->take_back(
      CommMemory(reinterpret_cast<std::byte*>(comm), {.destroy = destroy<Made>}));
}

}  // namespace

std::uint64_t message_of(std::uint32_t comm, std::uint32_t group, std::uint32_t part) noexcept {
  return std::uint64_t{comm + 1} << 40 | std::uint64_t{group} << 8 | part;
}

// Most messages are small, and most groups have one.
Group Group::of(const TrafficOptions& options, std::uint32_t number) {
  Draws draws(options.seed, kDrawsOfGroups + (std::uint64_t{options.comm} << 32) + number);
  Group group;
  group.count =
      draws.percent(70) ? 1 : static_cast<std::uint32_t>(draws.between(1, options.most_in_group));
  for (std::uint32_t i = 0; i < group.count; ++i) {
    Part& part = group.parts[i];
    const std::uint64_t kind = draws.below(10);
    const std::uint64_t most = kind < 4 ? 64 : kind < 7 ? 8192 : options.most_bytes;
    part.bytes = static_cast<std::uint32_t>(
        draws.below(std::min<std::uint64_t>(most, options.most_bytes) + 1));
    part.capacity =
        std::min(options.most_bytes, part.bytes + static_cast<std::uint32_t>(draws.below(2) * 512));
    part.tag = static_cast<int>(3 * std::uint64_t{i} + draws.below(3));
    group.order[i] = static_cast<std::uint8_t>(i);
  }
  for (std::uint32_t i = group.count; i > 1; --i) {
    std::swap(group.order[i - 1], group.order[draws.below(i)]);
  }
  return group;
}

// As net::register_memory(), with what a GPU would need.
End::Slot End::make_slot(std::uint64_t bytes, bool is_gpu) {
  Slot slot;
  slot.buffer = payload_.add(bytes, is_gpu);
  const std::shared_ptr<RegisteredBuffers> buffers = comm().buffers();
  auto made = buffers->make(
      {.data = reinterpret_cast<void*>(payload_.at(slot.buffer).address), .size = bytes});
  if (!made) throw std::runtime_error("a buffer cannot be registered");
  MemoryHandle& handle = **made;
  if (is_gpu) {
    handle.flush = {.any = true, .owner = 1};
    const auto rails = static_cast<RecvComm&>(comm()).prepare_flush(handle.flush, handle.rails);
    if (!rails) throw std::runtime_error("no rail can flush");
    handle.keep_rails(*rails);
  }
  const bool is_sender = comm().role() == Role::kSend;
  if (options_.one_railed == (is_sender ? 1 : 2)) handle.keep_rails(1);
  slot.handle = buffers->add(*std::move(made));
  handles_.push_back(slot.handle);
  return slot;
}

void End::note_progress() noexcept {
  ++progress_;
  const std::int64_t now = now_ns();
  if (progress_ns_ != 0) {
    longest_gap_ns_ = std::max(longest_gap_ns_, now - progress_ns_);
    if (now >= options_.late_ns)
      longest_late_gap_ns_ = std::max(longest_late_gap_ns_, now - progress_ns_);
  }
  progress_ns_ = now;
}

void End::end_with(int error) noexcept {
  if (error_ != 0) return;
  error_ = error;
  ended_ns_ = now_ns();
}

void End::note_busy() noexcept { last_busy_ns_ = now_ns(); }

void End::violate(const std::string& what) {
  nics_.violate("comm " + std::to_string(options_.comm) + ": " + what);
}

std::uint32_t End::paths_up() noexcept {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < comm().paths().size(); ++i) count += comm().is_up(i) ? 1 : 0;
  return count;
}

// The plugin looks at the clock after kTestsPerLook tests that find nothing.
std::uint32_t End::tests_of(Burst burst) noexcept {
  if (burst == Burst::kReaction) return kMostTests;
  const std::int64_t now = now_ns();
  if (comm().gate().is_alarmed() && now - looked_ns_ < kLooksWhileAlarmed) return kMostTests;
  looked_ns_ = now;
  return kTestsPerLook;
}

template <class Kind>
void End::burst_of(Kind& end, Burst burst) {
  if (is_closed_ || error_ != 0) return;
  while (end.begin()) continue;
  const std::uint32_t tests = tests_of(burst);
  bool is_moving = true;
  for (std::uint32_t made = 0; made < tests && is_moving && !end.open_.empty() && error_ == 0;) {
    is_moving = tests == kTestsPerLook || process_.has_completions();
    for (std::size_t i = 0; i < end.open_.size() && error_ == 0; ++made) {
      if (end.look(end.open_[i])) {
        end.open_.erase(end.open_.begin() + static_cast<std::ptrdiff_t>(i));
        is_moving = true;
      } else {
        ++i;
      }
    }
  }
}

// --- The receiver ---

Receiver::Receiver(Process& process, Nics& nics, Payload& payload, const TrafficOptions& options,
                   std::unique_ptr<Connection> connection, const CommOptions& comm_options)
    : End(process, nics, payload, options) {
  comm_ = make_comm<Guarded<RecvComm>>(std::move(connection), comm_options);
  for (std::uint32_t i = 0; i < options.groups_at_once + options.most_in_group; ++i) {
    free_.push_back(make_slot(options.most_bytes, options.is_gpu));
  }
}

Receiver::~Receiver() { close(); }

void Receiver::close() {
  if (std::exchange(is_closed_, true)) return;
  for (MemoryHandle* const handle : handles_) RegisteredBuffers::remove(handle);
  comm_->close();
  give_back(process_, comm_);
}

void Receiver::burst(Burst burst) { burst_of(*this, burst); }

// True: an irecv was accepted, and there may be another.
bool Receiver::begin() {
  if (error_ != 0 || next_ >= options_.groups || open_.size() >= options_.groups_at_once)
    return false;
  Open open;
  open.number = next_;
  open.group = Group::of(options_, next_);
  if (free_.size() < open.group.count) return false;
  std::array<void*, wire::kMaxReceives> data{};
  std::array<std::size_t, wire::kMaxReceives> sizes{};
  std::array<int, wire::kMaxReceives> tags{};
  std::array<void*, wire::kMaxReceives> handles{};
  for (std::uint32_t i = 0; i < open.group.count; ++i) {
    open.slots[i] = free_[free_.size() - 1 - i];
    data[i] = reinterpret_cast<void*>(payload_.at(open.slots[i].buffer).address);
    sizes[i] = open.group.parts[i].capacity;
    tags[i] = open.group.parts[i].tag;
    handles[i] = open.slots[i].handle;
  }
  Comm* const comm = comm_;
  // A message of no bytes cannot be seen.
  open.is_done_early =
      options_.has_early_done && open.group.count == 1 && open.group.parts[0].bytes != 0;
  if (open.is_done_early) open.request = abi::kOptionalReceive;
  const ncclResult_t rc = abi::irecv(comm, static_cast<int>(open.group.count), data.data(),
                                     sizes.data(), tags.data(), handles.data(), &open.request);
  if (rc != ncclSuccess) end_with(rc);
  if (rc != ncclSuccess || open.request == nullptr) return false;
  for (std::uint32_t i = 0; i < open.group.count; ++i) {
    PayloadBuffer& buffer = payload_.at(open.slots[i].buffer);
    buffer.extents.clear();
    buffer.granted = std::max<std::uint64_t>(open.group.parts[i].capacity, 1);
    buffer.expected = message_of(options_.comm, open.number, i);
  }
  if (open.is_done_early) {
    int done = 0;
    if (abi::test(open.request, &done, nullptr) != ncclSuccess || done == 0)
      violate("a receive that NCCL does not wait for is not done at once");
  }
  free_.resize(free_.size() - open.group.count);
  ++next_;
  open_.push_back(open);
  return true;
}

// True: the group is done.
bool Receiver::look(Open& open) {
  if (open.is_done_early) return look_for_data(open);
  int done = 0;
  if (!open.has_arrived) {
    const ncclResult_t rc = abi::test(open.request, &done, open.sizes.data());
    if (rc != ncclSuccess) end_with(rc);
    if (rc != ncclSuccess || done == 0) return false;
    open.has_arrived = true;
    note_progress();
    for (std::uint32_t i = 0; i < open.group.count; ++i) {
      payload_.at(open.slots[i].buffer).granted = 0;
    }
    if (options_.is_gpu) {
      std::array<void*, wire::kMaxReceives> data{};
      std::array<void*, wire::kMaxReceives> handles{};
      for (std::uint32_t i = 0; i < open.group.count; ++i) {
        data[i] = reinterpret_cast<void*>(payload_.at(open.slots[i].buffer).address);
        handles[i] = open.slots[i].handle;
      }
      Comm* const comm = comm_;
      const ncclResult_t flushed =
          abi::iflush(comm, static_cast<int>(open.group.count), data.data(), open.sizes.data(),
                      handles.data(), &open.flush);
      if (flushed != ncclSuccess) {
        end_with(flushed);
        return false;
      }
    }
  }
  if (open.flush != nullptr) {
    done = 0;
    const ncclResult_t rc = abi::test(open.flush, &done, nullptr);
    if (rc != ncclSuccess) end_with(rc);
    if (rc != ncclSuccess || done == 0) return false;
  }
  check(open);
  ++done_;
  return true;
}

// The buffer stays granted: until it is granted anew, the same data may be written again.
bool Receiver::look_for_data(Open& open) {
  const PayloadBuffer& buffer = payload_.at(open.slots[0].buffer);
  if (!Payload::check(buffer, buffer.expected, open.group.parts[0].bytes).empty()) return false;
  note_progress();
  free_.push_back(open.slots[0]);
  ++done_;
  return true;
}

void Receiver::check(Open& open) {
  for (std::uint32_t i = 0; i < open.group.count; ++i) {
    const Group::Part& part = open.group.parts[i];
    PayloadBuffer& buffer = payload_.at(open.slots[i].buffer);
    std::string wrong;
    if (open.sizes[i] != static_cast<int>(part.bytes)) {
      wrong = "has size " + std::to_string(open.sizes[i]) + " in place of " +
              std::to_string(part.bytes);
    } else {
      wrong = Payload::check(buffer, message_of(options_.comm, open.number, i), part.bytes);
    }
    if (!wrong.empty()) {
      violate("group " + std::to_string(open.number) + " part " + std::to_string(i) + ": " + wrong);
    }
    buffer.extents.clear();
    free_.push_back(open.slots[i]);
  }
}

// --- The sender ---

Sender::Sender(Process& process, Nics& nics, Payload& payload, const TrafficOptions& options,
               std::unique_ptr<Connection> connection, const CommOptions& comm_options)
    : End(process, nics, payload, options) {
  comm_ = make_comm<Guarded<SendComm>>(std::move(connection), comm_options);
  for (std::uint32_t i = 0; i < options.groups_at_once + options.most_in_group; ++i) {
    free_.push_back(make_slot(options.most_bytes, false));
  }
  group_ = Group::of(options_, 0);
}

Sender::~Sender() { close(); }

void Sender::close() {
  if (std::exchange(is_closed_, true)) return;
  for (MemoryHandle* const handle : handles_) RegisteredBuffers::remove(handle);
  comm_->close();
  give_back(process_, comm_);
}

void Sender::burst(Burst burst) { burst_of(*this, burst); }

bool Sender::begin() {
  if (error_ != 0 || (next_ >= options_.groups && part_ == 0) || free_.empty() ||
      open_.size() >= kSendsAtOnce)
    return false;
  const std::int64_t now = now_ns();
  if (part_ == 0 && now < next_send_ns_ && now >= rush_until_ns_) return false;
  const std::uint8_t index = group_.order[part_];
  const Group::Part& part = group_.parts[index];
  const Slot slot = free_.back();
  PayloadBuffer& buffer = payload_.at(slot.buffer);
  buffer.message = message_of(options_.comm, next_, index);
  Open open = {.request = nullptr, .slot = slot, .bytes = part.bytes};
  Comm* const comm = comm_;
  const ncclResult_t rc = abi::isend(comm, reinterpret_cast<void*>(buffer.address),
                                     std::size_t{part.bytes}, part.tag, slot.handle, &open.request);
  if (rc != ncclSuccess) end_with(rc);
  if (rc != ncclSuccess || open.request == nullptr) {
    buffer.message = 0;
    return false;
  }
  free_.pop_back();
  open_.push_back(open);
  if (++part_ == group_.count) {
    part_ = 0;
    group_ = Group::of(options_, ++next_);
    next_send_ns_ = now + options_.pace_ns;
  }
  return true;
}

bool Sender::look(Open& open) {
  int done = 0;
  int size = 0;
  const ncclResult_t rc = abi::test(open.request, &done, &size);
  if (rc != ncclSuccess) end_with(rc);
  if (rc != ncclSuccess || done == 0) return false;
  note_progress();
  ++done_;
  PayloadBuffer& buffer = payload_.at(open.slot.buffer);
  const bool has_peer = peer_ != nullptr && !peer_->is_closed() && !peer_->has_ended();
  if (payload_.take_placed(buffer.message) < open.bytes && has_peer) {
    violate("a send is done whose message has not been placed");
  }
  buffer.message = 0;
  free_.push_back(open.slot);
  return true;
}

}  // namespace beeline::simulation
