// SPDX-License-Identifier: Apache-2.0
//
// The two ends of a comm that follow a script (group_script.h). They repeat it until the given
// number of groups has been transferred. With Care::kEveryMessage, each message has its own
// contents and is compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/comms.h"
#include "tools/perf/patterns/group_script.h"
#include "tools/perf/slot_pool.h"

namespace beeline::perf {

enum class Care { kEveryMessage, kLastMessages };

// The most parts of a group: the minimum over the devices of all ranks.
Outcome<size_t> agree_on_parts(Rank& rank);

// The common part of both ends.
struct ScriptedComm {
  CommPlan plan;
  std::vector<Group> script;
  size_t most_parts = 1;
};

// Groups use the slots of a pool in turn. Each group has most_parts slots.
class ScriptedEnd {
 public:
  ScriptedEnd(ScriptedComm comm, SlotPool pool) : comm_(std::move(comm)), pool_(std::move(pool)) {}

  void begin(std::uint64_t round, std::uint64_t groups, Care care) noexcept {
    round_ = round;
    groups_ = groups;
    care_ = care;
  }
  SlotPool& pool() noexcept { return pool_; }
  const Buffer& memory() const noexcept { return pool_.memory(); }

 protected:
  const Group& group(std::uint64_t g) const noexcept {
    return comm_.script[g % comm_.script.size()];
  }
  std::uint64_t places() const noexcept { return pool_.slots() / comm_.most_parts; }
  std::uint64_t slot(std::uint64_t g, size_t part) const noexcept {
    return g % places() * comm_.most_parts + part;
  }
  // The first `size` bytes of the slot.
  Piece piece(std::uint64_t g, size_t part, size_t size) const noexcept {
    return {pool_.piece(slot(g, part)).at, size};
  }
  ContentId content(std::uint64_t g, size_t part) const noexcept {
    const std::uint64_t which = care_ == Care::kEveryMessage ? g : g % places();
    return content_id(comm_.plan.from, comm_.plan.to, comm_.plan.index, round_, which, part);
  }

  ScriptedComm comm_;
  SlotPool pool_;
  std::uint64_t groups_ = 0;
  std::uint64_t round_ = 0;  // makes the bytes of one run differ from those of another
  Care care_ = Care::kLastMessages;
};

class ScriptedSender : public ScriptedEnd {
 public:
  ScriptedSender(SendEnd& end, ScriptedComm comm, SlotPool pool)
      : ScriptedEnd(std::move(comm), std::move(pool)), end_(&end) {}

  NetResult<void> begin(std::uint64_t round, std::uint64_t groups, Care care);
  bool done() const noexcept { return next_ == groups_ && end_->idle(); }
  // Posts and tests once. True if one of them succeeded.
  NetResult<bool> step();
  SendEnd& end() noexcept { return *end_; }

 private:
  NetResult<void> write_group();

  SendEnd* end_;
  std::uint64_t next_ = 0;              // group of the next send,
  size_t part_ = 0;                     // and its place in the order
  std::vector<std::uint64_t> free_at_;  // by place: how many sends must be done before it is reused
};

class ScriptedReceiver : public ScriptedEnd {
 public:
  ScriptedReceiver(Rank& rank, RecvEnd& end, ScriptedComm comm, SlotPool pool)
      : ScriptedEnd(std::move(comm), std::move(pool)), rank_(&rank), end_(&end) {}

  NetResult<void> begin(std::uint64_t round, std::uint64_t groups, Care care);
  bool done() const noexcept { return arrived_ == groups_; }
  NetResult<bool> step();
  // Compares the data of the last groups, which is still in memory.
  NetResult<size_t> check_last();
  RecvEnd& end() noexcept { return *end_; }

  const std::string& label() const noexcept { return end_->label(); }
  std::uint64_t messages() const noexcept { return messages_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  size_t wrong() const noexcept { return wrong_; }

 private:
  RecvGroup arguments(std::uint64_t g) const noexcept;
  NetResult<void> take(std::uint64_t g);
  NetResult<size_t> check(std::uint64_t g);
  NetResult<size_t> check_behind(const std::string& where, Piece behind);

  Rank* rank_;
  RecvEnd* end_;
  std::uint64_t posted_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  size_t wrong_ = 0;
};

}  // namespace beeline::perf
