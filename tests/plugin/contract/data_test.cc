// SPDX-License-Identifier: Apache-2.0
//
// Single messages: every size arrives completely and at the right address, and no other byte
// changes.
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <string>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/gpu.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kWindow = 8;  // as many messages as NCCL keeps in flight

struct Message {
  size_t size;
  size_t from;      // offset at the sender
  size_t to;        // offset in the receiver's slot
  size_t capacity;  // of the receive
};

// All small sizes, and those next to powers of two, at odd offsets. Every third receive is larger
// than its message.
std::vector<Message> messages_of_all_sizes() {
  std::vector<size_t> sizes(10, 0);
  for (size_t size = 1; size <= 300; ++size) sizes.push_back(size);
  for (size_t power = 512; power <= (4U << 20); power *= 2) {
    sizes.insert(sizes.end(), {power - 1, power, power + 1});
  }
  std::vector<Message> all;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t spare = i % 3 == 2 ? 1 + i % 200 : 0;
    all.push_back({sizes[i], i * 7 % 129, i * 11 % 131, sizes[i] + spare});
  }
  return all;
}

// Keeps a window of requests in flight, and finishes them in order.
class Window {
 public:
  using Finished = std::function<void(size_t index, const Request& request)>;

  explicit Window(Finished finished) : finished_(std::move(finished)) {}

  // Waits for the oldest if the window is full.
  void make_room() {
    while (requests_.size() >= kWindow) end_oldest();
  }
  void add(Request request) { requests_.push_back(std::move(request)); }
  void drain() {
    while (!requests_.empty()) end_oldest();
  }

 private:
  void end_oldest() {
    requests_.front().finish();
    finished_(ended_++, requests_.front());
    requests_.pop_front();
  }

  Finished finished_;
  std::deque<Request> requests_;
  size_t ended_ = 0;
};

void send_all(Sender& end, const std::vector<Message>& messages) {
  size_t most = 0;
  for (const Message& message : messages) most = std::max(most, message.from + message.size);
  std::deque<Buffer> slots;
  for (size_t i = 0; i < kWindow; ++i) slots.emplace_back(end, most);
  Window window([&](size_t index, const Request& request) {
    BL_MUST(request.size() == messages[index].size);
  });
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    window.make_room();
    Buffer& slot = slots[i % kWindow];
    slot.fill(message.from, message.size, static_cast<uint32_t>(i));
    window.add(end.send(slot.part(message.from, message.size)));
  }
  window.drain();
  for (const Buffer& slot : slots) slot.must_hold();  // a source is only read
}

void receive_all(Receiver& end, const std::vector<Message>& messages) {
  constexpr size_t kMargin = 64;
  size_t most = 0;
  for (const Message& message : messages) most = std::max(most, message.to + message.capacity);
  std::deque<Buffer> slots;
  for (size_t i = 0; i < kWindow; ++i) slots.emplace_back(end, most + kMargin);
  Window window([&](size_t index, const Request& request) {
    const Message& message = messages[index];
    Buffer& slot = slots[index % kWindow];
    BL_MUST(request.size() == message.size);
    const size_t used = message.to + message.capacity + kMargin;
    slot.expect(message.to, message.size, static_cast<uint32_t>(index));
    slot.must_hold(0, used);
    slot.wipe(0, used);
  });
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    window.make_room();
    window.add(end.receive(slots[i % kWindow].part(message.to, message.capacity)));
  }
  window.drain();
  for (const Buffer& slot : slots) slot.must_hold();
}

}  // namespace

TEST_CASE("data: a message arrives through every version of the table", "[contract][data]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  const std::vector<Message> messages = {{1000, 3, 5, 1000}};
  run_flow(
      {abi, usual_mode()}, [&](Sender& end) { send_all(end, messages); },
      [&](Receiver& end) { receive_all(end, messages); });
}

TEST_CASE("data: all sizes arrive whole, wherever they start", "[contract][data]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  const std::vector<Message> messages = messages_of_all_sizes();
  run_flow(
      way, [&](Sender& end) { send_all(end, messages); },
      [&](Receiver& end) { receive_all(end, messages); });
}

TEST_CASE("data: a message larger than its receive is cut, counted, and does no harm",
          "[contract][data]") {
  const size_t size = GENERATE(size_t{1}, size_t{100}, size_t{5000}, size_t{3} << 20);
  const size_t capacity = size / 3;
  CAPTURE(size);
  constexpr size_t kAfter = 500;
  run_flow(
      [&](Sender& end) {
        Buffer from(end, size);
        from.fill(0, size, 1);
        end.send(from.all()).finish();
        Buffer next(end, kAfter);
        next.fill(0, kAfter, 2);
        end.send(next.all()).finish();
        BL_MUST(either_warns(end.peer, {"send of " + std::to_string(size), "cut"}));
      },
      [&](Receiver& end) {
        Buffer to(end, size);  // all of it is registered: only the receive's size protects the rest
        Request request = end.receive(to.part(0, capacity));
        request.finish();
        BL_MUST(request.size() == capacity);
        Memory whole(size);
        whole.fill(0, size, 1);
        BL_MUST(std::memcmp(to.at(), whole.at(), capacity) == 0);
        BL_MUST(std::all_of(to.at(capacity), to.at(size),
                            [](uint8_t byte) { return byte == Memory::kFresh; }));
        Buffer next(end, kAfter);
        next.expect(0, kAfter, 2);
        end.receive(next.all()).finish();
        next.must_hold();
        BL_MUST(either_warns(end.peer, {"send of " + std::to_string(size), "cut"}));
      });
}

TEST_CASE("data: a hundred thousand small messages keep their order", "[contract][data]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  const uint32_t messages = repetitions(100000, 5000);
  run_flow(
      way, [&](Sender& end) { send_messages(end, 64, messages); },
      [&](Receiver& end) { receive_messages(end, 64, messages); });
}

TEST_CASE("data: a receive without a needed completion still receives its data",
          "[contract][data]") {
  const Abi abi = GENERATE(Abi::kV9, Abi::kV12);
  const std::string early_done = GENERATE(as<std::string>{}, "0", "1");
  CAPTURE(abi, early_done);
  const Variable variable("BEELINE_EARLY_DONE", early_done.c_str());
  constexpr size_t kMessages = 300;
  constexpr size_t kSize = 4096;
  run_flow(
      {abi, usual_mode()},
      [&](Sender& end) {
        Buffer memory(end, kWindow * kSize);
        Window window([](size_t, const Request&) {});
        for (size_t i = 0; i < kMessages; ++i) {
          window.make_room();
          memory.fill(i % kWindow * kSize, kSize, static_cast<uint32_t>(i));
          window.add(end.send(memory.part(i % kWindow * kSize, kSize)));
        }
        window.drain();
      },
      [&](Receiver& end) {
        Buffer memory(end, kWindow * kSize);
        std::deque<Request> requests;
        for (size_t i = 0; i < kMessages; ++i) {
          const size_t place = i % kWindow * kSize;
          if (i >= kWindow) {
            // Polls the data itself, as a GPU does with LL128.
            memory.expect(place, kSize, static_cast<uint32_t>(i - kWindow));
            wait_until(
                [&] {
                  for (Request& request : requests) request.poll();
                  return memory.holds(place, kSize);
                },
                "data");
            requests.front().finish();
            requests.pop_front();
          }
          requests.push_back(irecv_optional(end.net(), end.comm, memory.part(place, kSize)));
        }
        for (size_t i = kMessages; i < kMessages + kWindow; ++i) {
          memory.expect(i % kWindow * kSize, kSize, static_cast<uint32_t>(i - kWindow));
        }
        for (Request& request : requests) request.finish();
        wait_until([&] { return memory.holds(0, memory.size()); }, "the last data");
        memory.must_hold();
      });
}
