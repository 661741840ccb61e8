// SPDX-License-Identifier: Apache-2.0
// The requester of a queue pair: executes posted send requests in order at the peer's queue pair,
// retries those that are not acknowledged, and completes them.
//
// While a port is paused, no data moves and timeouts are extended; run() returns when to check
// again. If a port loses an acknowledgement, the piece is sent again later; the requester remembers
// that the peer has it and does not execute it twice.
//
// There are two modes. If neither port is shaped, a piece is executed and acknowledged at once. If
// a port has a rate or latency, pieces are in flight: they are sent when the wire has room,
// delivered at the time of their arrival, and acknowledged one latency later.
//
// Threads: the caller holds the queue pair's run_mutex_.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "softnic/nic/payload.h"
#include "softnic/nic/peer_route.h"
#include "softnic/nic/random.h"
#include "softnic/nic/responder.h"
#include "softnic/nic/send_queue.h"

namespace softnic {

class Qp;

class Requester {
 public:
  Requester(Qp& qp, SendQueue& queue) noexcept : qp_(qp), queue_(queue) {}

  // The most that one call may do.
  struct Budget {
    std::uint64_t bytes;
    std::uint32_t messages;
  };
  // Works until nothing is left to do now. Returns when to call it again, if that is needed.
  std::optional<std::int64_t> run(Budget budget);

  // Whether a port is shaped, so that the time of posting is needed.
  bool is_paced() const noexcept { return is_paced_.load(std::memory_order_relaxed); }

  // The queue pair moves to SQD: requests that have started are finished, the others wait for RTS.
  void drain() noexcept;
  bool is_drained() const noexcept { return next() >= drain_end_; }

  // The address of the peer has changed.
  void forget_route() noexcept { route_.forget(); }

  // Ends every unfinished request with a flush error.
  void flush();
  // The queue pair was reset: discards all state of the last connection.
  void restart();

  std::uint64_t next() const noexcept { return next_.load(std::memory_order_seq_cst); }
  bool is_idle() const noexcept { return next() == queue_.posted(); }
  // Whether there is a request to work on in this state.
  bool can_run() const noexcept;

 private:
  struct InFlightPiece {
    std::uint64_t sequence;
    std::uint64_t offset;
    std::uint64_t bytes;
    std::int64_t arrives_at;
    std::int64_t acked_at;
  };

  // The peer has executed all up to here, but its acknowledgement was lost.
  struct Taken {
    std::uint64_t sequence;
    std::uint64_t end;  // offset in that message
  };
  enum class Delivery { kArrives, kLost, kAnswerLost };
  // The settings of both ports by which pieces were sent.
  struct Shape {
    const PortRecord* local = nullptr;
    const PortRecord* remote = nullptr;
    std::array<std::uint64_t, 3> ours{};  // rate, latency, jitter
    std::array<std::uint64_t, 3> theirs{};
    bool operator==(const Shape&) const = default;
  };

  std::optional<std::int64_t> run_direct(Budget& budget);
  std::optional<std::int64_t> run_shaped(std::int64_t now, Budget& budget);
  void send_pieces(std::int64_t now);
  void send_piece(std::int64_t now);
  void resend_if_changed(bool has_route);
  bool deliver_next(std::int64_t now, Budget& budget);
  bool take_acknowledgement(std::int64_t now);
  std::int64_t next_shaped_event(std::int64_t now) const;
  void drop_in_flight();

  std::uint64_t end_of_work() const noexcept;
  bool is_device_removed() const noexcept;
  void check_route();
  bool is_shaped() const noexcept { return (route_.faults() & kFaultShaped) != 0; }
  std::optional<std::int64_t> check_pause();
  std::optional<std::int64_t> wait_more(std::int64_t now) const noexcept;

  Answer transfer_piece(SendWqe& wqe, std::uint64_t sequence, std::uint64_t offset,
                        std::uint64_t bytes);
  bool gather(const SendWqe& wqe, std::uint64_t sequence, std::uint64_t offset, std::uint64_t bytes,
              MemoryPieces& ours);
  Answer apply_port_faults(std::uint32_t faults, SendWqe& wqe, Delivery& delivery);
  Answer read_with_deferral(const Request& request, const MemoryPieces& ours);
  Answer exchange(std::uint64_t sequence, const Request& request, const MemoryPieces& ours,
                  Delivery delivery);
  Answer apply_armed_faults(SendWqe& wqe);
  void log_armed_fault(const SendWqe& wqe, const std::string& fault);
  Delivery draw_delivery(std::uint64_t length);
  bool has_taken(std::uint64_t sequence, std::uint64_t end) const noexcept;

  // Applies an answer to the oldest unfinished request. Returns true if the next piece can follow.
  bool handle_answer(const Answer& answer, std::uint64_t bytes);
  bool wait_for_answer();
  bool wait_until_ready(std::int64_t wait_ns);
  void complete(ibv_wc_status status);
  void fail(ibv_wc_status status);

  Qp& qp_;
  SendQueue& queue_;
  PeerRoute route_;
  std::atomic<std::uint64_t> next_{0};      // the oldest unfinished request
  std::uint64_t offset_ = 0;                // bytes of it that the peer has acknowledged
  std::int64_t waiting_until_ = 0;          // 0: not waiting
  std::atomic<bool> waits_forever_{false};  // not acknowledged, and the timeout is infinite
  bool answered_ = false;                   // the peer has answered on this connection
  std::uint32_t unanswered_ = 0;            // attempts in a row without an answer
  std::uint32_t rnr_count_ = 0;
  std::int64_t paused_since_ = 0;  // 0: not paused
  std::optional<Taken> taken_;
  Random random_;  // decides losses and jitter of this connection

  std::atomic<bool> is_paced_{false};
  // Oldest first. The first arrived_ of them wait for their acknowledgement.
  std::deque<InFlightPiece> in_flight_;
  std::size_t arrived_ = 0;
  std::atomic<std::uint64_t> drain_end_{0};  // in SQD: one past the last request to finish
  std::uint64_t send_sequence_ = 0;
  std::uint64_t send_offset_ = 0;
  std::int64_t wire_free_at_ = 0;
  std::int64_t send_jitter_ = 0;       // of the message that is being sent
  std::uint32_t send_generation_ = 0;  // of the fabric, when pieces were last sent
  Shape shape_;
};

}  // namespace softnic
