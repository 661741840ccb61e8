// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/unit/recovery_search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace beeline::test {
namespace {

using StateId = std::uint32_t;
constexpr StateId kNone = 0xffff'ffff;

struct Hash {
  std::uint64_t high = 0;
  std::uint32_t low = 0;
};

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

Hash hash_of(const ModelState& state) {
  constexpr std::size_t kWords = (sizeof(ModelState) + 7) / 8;
  std::array<std::uint64_t, kWords + kWords % 2> words{};
  std::memcpy(words.data(), &state, sizeof state);
  std::uint64_t a = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t b = 0xd1b5'4a32'd192'ed03;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    a = mix(words[i] ^ a ^ 0xa076'1d64'78bd'642f, words[i + 1] ^ 0xe703'7ed1'a0b4'28db);
    b = mix(words[i] ^ 0x8ebc'6af0'9c88'c6e3, words[i + 1] ^ b ^ 0x5899'65cc'7537'4cc3);
  }
  return {.high = mix(a, b ^ 0x1d8e'4e27'c47d'124f), .low = static_cast<std::uint32_t>(a ^ b)};
}

// Numbers for states, in the order in which they are found.
class StateTable {
 public:
  StateTable() : slots_(std::size_t{1} << 16) {}

  // The number of the state, and whether it is new.
  std::pair<StateId, bool> number(const ModelState& state) {
    if (2 * count_ > slots_.size()) grow();
    const Hash hash = hash_of(state);
    Slot& slot = find(hash);
    if (slot.id != kNone) return {slot.id, false};
    slot = {.high = hash.high, .low = hash.low, .id = static_cast<StateId>(count_++)};
    return {slot.id, true};
  }
  std::size_t size() const noexcept { return count_; }

 private:
  struct Slot {
    std::uint64_t high = 0;
    std::uint32_t low = 0;
    StateId id = kNone;
  };

  Slot& find(const Hash& hash) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash.high & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.id == kNone || (slot.high == hash.high && slot.low == hash.low)) return slot;
    }
  }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.id != kNone) find({.high = slot.high, .low = slot.low}) = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

class Search {
 public:
  Search(const ModelOptions& options, std::size_t most_states)
      : model_(options), most_states_(most_states) {}

  SearchResult run();

 private:
  struct Edge {
    StateId to : 30;
    StateId sort : 2;
  };
  struct Found {
    StateId from = kNone;
    std::uint32_t step = 0;  // its index in list_steps()
  };

  bool visit(const ModelState& state, StateId id);
  void check_end_is_near();
  void check_no_circle();
  std::string way_to(StateId id);
  bool leads_near_end(StateId id) const {
    return std::ranges::any_of(edges_of(id), [this](const Edge& edge) {
      return sort_of(edge) != StepSort::kFault && is_near_end_[edge.to];
    });
  }
  static StepSort sort_of(const Edge& edge) { return static_cast<StepSort>(edge.sort); }
  std::span<const Edge> edges_of(StateId id) const {
    return {edges_.data() + first_edges_[id], first_edges_[id + 1U] - first_edges_[id]};
  }

  Model model_;
  const std::size_t most_states_;
  StateTable table_;
  std::vector<Found> found_;  // by state
  std::vector<Edge> edges_;
  std::vector<std::size_t> first_edges_;  // by state, of those visited
  std::vector<bool> is_near_end_;         // by state: a way without faults leads to the end
  std::vector<ModelState> later_;         // found, and not visited
  std::vector<ModelStep> steps_;
  SearchResult result_;
};

// False: a claim is broken.
bool Search::visit(const ModelState& state, StateId id) {
  first_edges_.push_back(edges_.size());
  is_near_end_.push_back(state.is_end());
  model_.list_steps(state, steps_);
  for (std::uint32_t i = 0; i < steps_.size(); ++i) {
    const ModelStep& step = steps_[i];
    if (step.wrong != nullptr) {
      result_.wrong = "\"" + std::string(step.wrong) + "\" is broken:\n" + way_to(id) + "  " +
                      text_of(step) + "\n";
      return false;
    }
    const auto [to, is_new] = table_.number(step.next);
    edges_.push_back({.to = to & 0x3fff'ffff, .sort = static_cast<StateId>(step.sort) & 3});
    if (!is_new) continue;
    found_.push_back({.from = id, .step = i});
    later_.push_back(step.next);
  }
  return true;
}

SearchResult Search::run() {
  for (const ModelState& first : model_.first_states()) {
    if (!table_.number(first).second) continue;
    found_.push_back({});
    later_.push_back(first);
  }
  // States are visited in the order of their numbers.
  std::vector<ModelState> now;
  StateId id = 0;
  while (!later_.empty() && table_.size() < most_states_) {
    now.swap(later_);
    later_.clear();
    for (const ModelState& state : now) {
      if (!visit(state, id++)) {
        result_.states = table_.size();
        return result_;
      }
    }
  }
  first_edges_.push_back(edges_.size());
  result_.states = table_.size();
  if (!later_.empty()) return result_;
  check_end_is_near();
  if (result_.wrong.empty()) check_no_circle();
  result_.is_complete = result_.wrong.empty();
  return result_;
}

// A fault must not be the only way out, so such a step leads nowhere. Numbers mostly grow along a
// way, so that a few rounds suffice.
void Search::check_end_is_near() {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (StateId id = static_cast<StateId>(table_.size()); id-- != 0;) {
      if (is_near_end_[id] || !leads_near_end(id)) continue;
      is_near_end_[id] = has_changed = true;
    }
  }
  const auto stuck = std::ranges::find(is_near_end_, false);
  if (stuck == is_near_end_.end()) return;
  result_.wrong = "\"both ends can always finish\" is broken:\n" +
                  way_to(static_cast<StateId>(stuck - is_near_end_.begin()));
}

// Takes away states that no step leads to, until none is left. Repetitions do not count.
void Search::check_no_circle() {
  std::vector<std::uint32_t> steps_into(table_.size());
  for (const Edge& edge : edges_) {
    if (sort_of(edge) != StepSort::kRepeat) ++steps_into[edge.to];
  }
  std::vector<StateId> todo;
  std::size_t taken = 0;
  for (StateId id = 0; id < table_.size(); ++id) {
    if (steps_into[id] == 0) todo.push_back(id);
  }
  while (!todo.empty()) {
    const StateId id = todo.back();
    todo.pop_back();
    ++taken;
    for (const Edge& edge : edges_of(id)) {
      if (sort_of(edge) != StepSort::kRepeat && --steps_into[edge.to] == 0) todo.push_back(edge.to);
    }
  }
  if (taken == table_.size()) return;
  const auto first = std::ranges::find_if(steps_into, [](std::uint32_t into) { return into != 0; });
  result_.wrong = "\"messages are not answered for ever\" is broken, after:\n" +
                  way_to(static_cast<StateId>(first - steps_into.begin()));
}

std::string Search::way_to(StateId id) {
  std::vector<StateId> ids;
  for (StateId at = id; at != kNone; at = found_[at].from) ids.push_back(at);
  std::ranges::reverse(ids);
  ModelState state = model_.first_states()[ids.front()];
  std::string text;
  std::vector<ModelStep> steps;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    model_.list_steps(state, steps);
    const ModelStep& step = steps[found_[ids[i]].step];
    text += "  " + text_of(step) + "\n";
    state = step.next;
  }
  return text;
}

}  // namespace

SearchResult search(const ModelOptions& options, std::size_t most_states) {
  return Search(options, most_states).run();
}

}  // namespace beeline::test
