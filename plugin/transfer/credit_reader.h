// SPDX-License-Identifier: Apache-2.0
//
// Reads the credit lines that the receiver writes into a sender's ring. Sends take them in order,
// but those of an irecv of several buffers by tag, if they do not come in its order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "plugin/wire/credit.h"
#include "plugin/wire/limits.h"

namespace beeline {

// The place of the next line, and the order word that it is expected to have. In two cases the word
// lacks the notice bit, so that no line equals it and Comm::look_for_credit() leaves the message to
// SendComm::isend(): unless the fast isend may take lines, where all other fields are right, and
// while lines are matched by tag, where only the number is. Atomic, since an isend without credit
// reads them even while the control thread has the comm.
class CreditCursor {
 public:
  const wire::CreditLine& line() const noexcept { return *line_.load(std::memory_order_relaxed); }
  std::uint64_t order() const noexcept { return order_.load(std::memory_order_relaxed); }
  void await(const wire::CreditLine* ring, std::uint32_t position, std::uint64_t order) noexcept {
    line_.store(&ring[position % wire::kMaxLines], std::memory_order_relaxed);
    order_.store(order, std::memory_order_relaxed);
  }
  // The line with this order word is taken, in order.
  void await_after(const wire::CreditLine* ring, std::uint64_t order) noexcept {
    await(ring, wire::number_of(order), wire::order_after(order));
  }

 private:
  static constexpr wire::CreditLine kNoLine = {};
  std::atomic<const wire::CreditLine*> line_ = &kNoLine;
  std::atomic<std::uint64_t> order_ = wire::kOneNotice;
};

class CreditReader {
 public:
  // `is_fast`: the fast isend reads all that it needs of a line.
  CreditReader(CreditCursor& cursor, const wire::CreditLine* ring, wire::Rails rails,
               bool is_fast) noexcept;

  // The line that a send with this tag takes: the next one, or the first one with that tag of its
  // irecv. Null while it, or one before it, has not come.
  const wire::LineFacts* find(int tag) noexcept;
  void take(const wire::LineFacts& line) noexcept;  // that was found
  // How the receiver has broken the protocol. Null: it has not.
  const char* error() const noexcept { return error_; }
  void set_slow() noexcept;  // the fast isend takes no line any more

  std::uint32_t next() const noexcept { return wire::number_of(cursor_.order()) - 1; }
  bool is_in_order() const noexcept { return count_ == 0; }  // not by tag
  // All lines of an irecv are taken, and none of the one after it.
  bool is_between_irecvs() const noexcept { return is_in_order() && index() == 0; }
  bool has_come(std::uint32_t position) const noexcept;

 private:
  std::uint8_t index() const noexcept { return wire::index_of(cursor_.order()); }
  bool read(std::uint32_t position, std::uint8_t index, std::uint8_t count) noexcept;
  void await_in_order(std::uint64_t order) noexcept;
  void await_by_tag() noexcept;

  CreditCursor& cursor_;
  const wire::CreditLine* const ring_;
  const wire::Rails rails_;
  bool is_fast_;
  const char* error_ = nullptr;
  std::int64_t torn_since_ns_ = 0;  // when the next line was first seen incomplete; 0: it is not
  // An irecv whose lines are matched by tag.
  std::uint32_t first_ = 0;  // position of its first line
  std::uint8_t count_ = 0;   // 0: there is none, lines are taken in order
  std::uint8_t next_ = 0;    // the first line that is not taken
  std::uint8_t read_ = 0;    // lines read so far; those from `next_` on are in `lines_`
  std::uint8_t taken_ = 0;   // a bit for each line beyond `next_`
  std::array<wire::LineFacts, wire::kMaxReceives> lines_;
};

}  // namespace beeline
