// SPDX-License-Identifier: Apache-2.0
//
// Receives of several buffers at once; a message's tag chooses the buffer.
#include <algorithm>
#include <numeric>
#include <random>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kMostParts = 8;

struct Slot {
  int tag;
  size_t capacity;
};
struct GroupMessage {
  size_t group;
  size_t slot;  // where it has to arrive
  size_t size;
};

// Groups of receives, and the order in which messages for them are sent.
struct Plan {
  std::vector<std::vector<Slot>> groups;
  std::vector<GroupMessage> messages;

  static constexpr size_t kStride = 8192;  // a slot and the space behind it
  size_t place(size_t group, size_t slot) const { return (group * kMostParts + slot) * kStride; }
  size_t bytes() const { return groups.size() * kMostParts * kStride; }
  uint32_t seed(const GroupMessage& message) const {
    return static_cast<uint32_t>(message.group * kMostParts + message.slot);
  }
  int tag(const GroupMessage& message) const { return groups[message.group][message.slot].tag; }
};

// Posts all sends before it tests any.
void send_plan(Sender& end, const Plan& plan) {
  Buffer memory(end, plan.bytes());
  end.peer.meet();  // every receive is posted
  std::vector<Request> requests;
  for (const GroupMessage& message : plan.messages) {
    const size_t place = plan.place(message.group, message.slot);
    memory.fill(place, message.size, plan.seed(message));
    requests.push_back(end.send(memory.part(place, message.size, plan.tag(message))));
  }
  finish_all(requests);
  memory.must_hold();
}

// Posts all receives before the first send.
void receive_plan(Receiver& end, const Plan& plan) {
  Buffer memory(end, plan.bytes());
  std::vector<Request> requests;
  for (size_t group = 0; group < plan.groups.size(); ++group) {
    std::vector<Part> parts;
    for (size_t slot = 0; slot < plan.groups[group].size(); ++slot) {
      const Slot& facts = plan.groups[group][slot];
      parts.push_back(memory.part(plan.place(group, slot), facts.capacity, facts.tag));
    }
    requests.push_back(end.receive(parts));
  }
  end.peer.meet();
  finish_all(requests);
  for (const GroupMessage& message : plan.messages) {
    const size_t arrived =
        std::min(message.size, plan.groups[message.group][message.slot].capacity);
    BL_MUST(requests[message.group].size(message.slot) == arrived);
    memory.expect(plan.place(message.group, message.slot), arrived, plan.seed(message));
  }
  memory.must_hold();
}

void run_plan(const Way& way, const Plan& plan) {
  run_flow(
      way, [&](Sender& end) { send_plan(end, plan); },
      [&](Receiver& end) { receive_plan(end, plan); });
}

// Adds a group whose messages are sent in this order of its slots.
void add_group(Plan& plan, const std::vector<Slot>& slots, const std::vector<size_t>& order) {
  const size_t group = plan.groups.size();
  plan.groups.push_back(slots);
  for (const size_t slot : order) {
    plan.messages.push_back({group, slot, (group * 37 + slot * 501) % 4000});
  }
}

std::vector<Slot> slots_with_own_tags(size_t count) {
  std::vector<Slot> slots;
  slots.reserve(count);
  for (size_t i = 0; i < count; ++i) slots.push_back({static_cast<int>(100 + i * 13), 4096});
  return slots;
}

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

}  // namespace

TEST_CASE("group: 16 groups of 8 are in flight on one comm, and tags come in any order",
          "[contract][group]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  std::mt19937 random(1);
  Plan plan;
  std::vector<size_t> order = in_order(kMostParts);
  for (size_t i = 0; i < kBuffersInFlight / kMostParts; ++i) {
    add_group(plan, slots_with_own_tags(kMostParts), order);
    std::shuffle(order.begin(), order.end(), random);
  }
  run_plan({abi, usual_mode()}, plan);
}

TEST_CASE("group: equal tags are served in the order of their slots, and of their groups",
          "[contract][group]") {
  Plan plan;
  const auto tags = [](const std::vector<int>& list) {
    std::vector<Slot> slots(list.size());
    std::transform(list.begin(), list.end(), slots.begin(), [](int tag) {
      return Slot{tag, 4096};
    });
    return slots;
  };
  // The slots with tag 5 are filled from first to last, whatever is sent in between.
  add_group(plan, tags({5, 5, 7, 5}), {0, 2, 1, 3});
  add_group(plan, tags({7, 5, 5, 7}), {1, 0, 3, 2});
  add_group(plan, tags({0, 0, 0, 0, 0, 0, 0, 0}), in_order(8));
  add_group(plan, tags({-1, INT32_MAX, INT32_MIN, 0, -1}), {3, 0, 2, 4, 1});
  for (int i = 0; i < 8; ++i) add_group(plan, tags({1, 2}), {1, 0});
  run_plan(usual_way(), plan);
}

TEST_CASE("group: its size may change from one to the next, and messages may be empty",
          "[contract][group]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  Plan plan;
  for (size_t round = 0; round < 3; ++round) {
    for (size_t count = kMostParts; count > 0; --count) {
      std::vector<size_t> order = in_order(count);
      std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(round % count),
                  order.end());
      add_group(plan, slots_with_own_tags(count), order);
    }
  }
  for (GroupMessage& message : plan.messages) {
    if ((message.group + message.slot) % 3 == 0) message.size = 0;
  }
  run_plan(way, plan);
}

TEST_CASE("group: a part that is too large is cut, and its neighbours are whole",
          "[contract][group]") {
  Plan plan;
  plan.groups = {{{1, 4096}, {2, 100}, {3, 0}, {4, 4096}}};
  plan.messages = {{0, 0, 3000}, {0, 1, 3000}, {0, 2, 3000}, {0, 3, 3000}};
  run_flow(
      [&](Sender& end) {
        send_plan(end, plan);
        BL_MUST(either_warns(end.peer, {"send of 3000", "cut"}));
      },
      [&](Receiver& end) {
        receive_plan(end, plan);
        BL_MUST(either_warns(end.peer, {"send of 3000", "cut"}));
      });
}

TEST_CASE("group: a message that the next receive is for waits, and nothing is lost",
          "[contract][group]") {
  Plan plan;
  plan.groups = {{{1, 4096}, {2, 4096}}, {{3, 4096}}};
  plan.messages = {{1, 0, 700}, {0, 1, 800}, {0, 0, 900}};
  run_flow(
      [&](Sender& end) {
        Buffer memory(end, plan.bytes());
        end.peer.meet();
        // Like several ranks behind one proxy thread: each calls isend again until it has a
        // request.
        std::vector<Request> requests(plan.messages.size());
        wait_until(
            [&] {
              bool all = true;
              for (size_t i = 0; i < requests.size(); ++i) {
                const GroupMessage& message = plan.messages[i];
                const size_t place = plan.place(message.group, message.slot);
                if (!requests[i]) {
                  memory.fill(place, message.size, plan.seed(message));
                  requests[i] = end.try_send(memory.part(place, message.size, plan.tag(message)));
                }
                all = requests[i] && requests[i].poll() && all;
              }
              return all;
            },
            "all sends");
      },
      [&](Receiver& end) { receive_plan(end, plan); });
}
