// SPDX-License-Identifier: Apache-2.0
// The sending half of a queue pair: takes posted work requests in order, carries them to the peer's
// queue pair, repeats what got no answer, and completes.
//
// A port that stands still stops the work and the clock: run() only asks to be called again. An
// answer that gets lost on a lossy port is heard of when the repetition is acknowledged; what the
// peer has taken is remembered here and not done twice.
//
// Two gaits. Undisturbed ports: each message is placed and completed at once, in the thread that
// posted it. Shaped ports: pieces are launched when the wire has room, land when they would arrive,
// and are acknowledged one latency later.
//
// Threads: all under the queue pair's run mutex.
#pragma once

#include <infiniband/verbs.h>

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

  // How much one call may do before others get their turn.
  struct Budget {
    std::uint64_t bytes;
    std::uint32_t messages;
  };
  // Works until nothing is left to do now. Returns when to come again, if there is a reason to.
  std::optional<std::int64_t> run(Budget budget);

  // The time of posting matters now: the wire is shaped.
  bool is_paced() const noexcept { return is_paced_.load(std::memory_order_relaxed); }

  // The queue pair goes to SQD: what has been started is finished, the rest waits for RTS.
  void drain() noexcept;
  bool is_drained() const noexcept { return next() >= drain_end_; }

  // The address of the peer changed.
  void forget_route() noexcept { route_.forget(); }

  // Ends every unfinished request with a flush error.
  void flush();
  // A new connection: nothing is outstanding and the peer is not known yet.
  void restart();

  std::uint64_t next() const noexcept { return next_.load(std::memory_order_seq_cst); }
  bool is_idle() const noexcept { return next() == queue_.posted(); }
  // There is something to do, and the state allows it.
  bool can_run() const noexcept;

 private:
  struct InFlightPiece {
    std::uint64_t sequence;
    std::uint64_t offset;
    std::uint64_t bytes;
    std::int64_t arrives_at;
    std::int64_t acked_at;
  };

  // The peer has all of its queue up to here, and the sender does not know.
  struct Taken {
    std::uint64_t sequence;
    std::uint64_t end;  // offset in that message
  };
  enum class Delivery { kArrives, kLost, kAnswerLost };

  std::optional<std::int64_t> run_direct(Budget& budget);
  std::optional<std::int64_t> run_shaped(std::int64_t now, Budget& budget);
  void send_pieces(std::int64_t now);
  void send_piece(std::int64_t now);
  void resend_if_changed();
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
  Delivery draw_delivery();
  bool has_taken(std::uint64_t sequence, std::uint64_t end) const noexcept;

  // What an answer means for the oldest unfinished request. True: go on.
  bool handle_answer(const Answer& answer, std::uint64_t bytes);
  bool wait_for_answer();
  bool wait_until_ready(std::int64_t wait_ns);
  void complete(ibv_wc_status status);
  void fail(ibv_wc_status status);

  Qp& qp_;
  SendQueue& queue_;
  PeerRoute route_;
  std::atomic<std::uint64_t> next_{0};      // the oldest unfinished request
  std::uint64_t offset_ = 0;                // of it, what the peer has acknowledged
  std::int64_t waiting_until_ = 0;          // 0: not waiting
  std::atomic<bool> waits_forever_{false};  // unanswered, and told to wait for ever
  bool answered_ = false;                   // the peer has spoken on this connection
  std::uint32_t unanswered_ = 0;            // in a row
  std::uint32_t rnr_count_ = 0;
  std::int64_t paused_since_ = 0;  // 0: things move
  std::optional<Taken> taken_;     // by the peer, whose answer got lost
  Random random_;                  // this connection's share of what the fabric does at random

  std::atomic<bool> is_paced_{false};
  std::deque<InFlightPiece>
      in_flight_;  // oldest first; the first landed_ of them await acknowledgement
  std::size_t arrived_ = 0;
  std::atomic<std::uint64_t> drain_end_{0};  // in SQD: one past the last request to finish
  std::uint64_t send_sequence_ = 0;
  std::uint64_t send_offset_ = 0;
  std::int64_t wire_free_at_ = 0;
  std::int64_t send_jitter_ = 0;       // of the message that is being launched
  std::uint32_t send_generation_ = 0;  // of the fabric, when flights were last launched
};

}  // namespace softnic
