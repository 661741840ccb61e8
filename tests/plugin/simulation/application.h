// SPDX-License-Identifier: Apache-2.0
//
// What NCCL does with one comm: isend, irecv in groups, test and iflush, through the functions that
// the plugin exports. It checks what arrives, and gives buffers new contents as soon as it may.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/recovery/guarded.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "tests/plugin/simulation/process.h"

namespace beeline::simulation {

// The messages of one comm. Both ends compute the same groups from it.
struct TrafficOptions {
  std::uint64_t seed = 0;
  std::uint32_t comm = 0;
  std::uint32_t most_in_group = 4;
  std::uint32_t most_bytes = 1 << 20;
  std::uint32_t groups_at_once = 4;  // irecvs that are open
  std::uint32_t groups = UINT32_MAX;
  std::int64_t pace_ns = 10 * kMs;  // between the groups of the sender
  bool is_gpu = false;              // the receiver's memory needs flushes
  std::uint32_t one_railed = 0;     // as RunOptions::one_railed
  bool has_early_done = false;      // NCCL looks for the data of most receives of one message
  std::int64_t late_ns = 0;         // from when longest_late_gap_ns() counts
};

// One irecv and its isends.
struct Group {
  struct Part {
    std::uint32_t bytes = 0;
    std::uint32_t capacity = 0;
    int tag = 0;
  };
  std::uint32_t count = 0;
  std::array<Part, wire::kMaxReceives> parts{};
  std::array<std::uint8_t, wire::kMaxReceives> order{};  // of the isends

  static Group of(const TrafficOptions& options, std::uint32_t number);
};

std::uint64_t message_of(std::uint32_t comm, std::uint32_t group, std::uint32_t part) noexcept;

// One end of a comm.
class End {
 public:
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  virtual ~End() = default;

  enum class Burst : std::uint8_t {
    kReaction,  // calls as long as they lead to something
    kLook,      // and so many tests that the plugin looks at the clock
  };
  virtual void burst(Burst burst) = 0;
  virtual void close() = 0;
  // Makes no new request.
  void stop_after(std::uint32_t groups) noexcept { options_.groups = groups; }
  void pause_until(std::int64_t when_ns) noexcept { paused_until_ns_ = when_ns; }
  std::int64_t paused_until_ns() const noexcept { return paused_until_ns_; }
  std::uint32_t groups_begun() const noexcept { return next_; }
  std::uint32_t groups_done() const noexcept { return done_; }
  virtual bool is_idle() const noexcept = 0;
  bool has_ended() const noexcept { return error_ != 0; }
  bool is_closed() const noexcept { return is_closed_; }
  std::int64_t ended_ns() const noexcept { return ended_ns_; }
  virtual Comm& comm() noexcept = 0;
  Process& process() noexcept { return process_; }
  // When it last had an open request, as far as that was noted.
  void note_busy() noexcept;
  std::int64_t last_busy_ns() const noexcept { return last_busy_ns_; }
  std::uint32_t paths_up() noexcept;
  const std::uint64_t& progress() const noexcept { return progress_; }
  std::int64_t longest_gap_ns() const noexcept { return longest_gap_ns_; }
  // The same, of those that end after TrafficOptions::late_ns.
  std::int64_t longest_late_gap_ns() const noexcept { return longest_late_gap_ns_; }

 protected:
  End(Process& process, Nics& nics, Payload& payload, const TrafficOptions& options)
      : process_(process), nics_(nics), payload_(payload), options_(options) {}

  struct Slot {
    std::size_t buffer = 0;
    MemoryHandle* handle = nullptr;
  };
  Slot make_slot(std::uint64_t bytes, bool is_gpu);
  std::uint32_t tests_of(Burst burst) noexcept;
  // The burst of a Receiver or a Sender.
  template <class Kind>
  void burst_of(Kind& end, Burst burst);
  void end_with(int error) noexcept;
  void note_progress() noexcept;
  void violate(const std::string& what);

  Process& process_;
  Nics& nics_;
  Payload& payload_;
  TrafficOptions options_;
  std::uint32_t next_ = 0;
  std::uint32_t done_ = 0;
  std::uint64_t progress_ = 0;
  std::int64_t progress_ns_ = 0;
  std::int64_t longest_gap_ns_ = 0;
  std::int64_t longest_late_gap_ns_ = 0;
  std::vector<Slot> free_;
  std::vector<MemoryHandle*> handles_;
  std::int64_t paused_until_ns_ = 0;
  std::int64_t ended_ns_ = 0;
  std::int64_t last_busy_ns_ = 0;
  std::int64_t looked_ns_ = 0;
  int error_ = 0;
  bool is_closed_ = false;
};

class Receiver final : public End {
 public:
  Receiver(Process& process, Nics& nics, Payload& payload, const TrafficOptions& options,
           std::unique_ptr<Connection> connection, const CommOptions& comm_options);
  ~Receiver() override;

  void burst(Burst burst) override;
  void close() override;
  bool is_idle() const noexcept override { return open_.empty(); }
  Comm& comm() noexcept override { return *comm_; }

 private:
  friend class End;

  struct Open {
    std::uint32_t number = 0;
    Group group;
    void* request = nullptr;
    void* flush = nullptr;
    bool has_arrived = false;
    bool is_done_early = false;
    std::array<Slot, wire::kMaxReceives> slots{};
    std::array<int, wire::kMaxReceives> sizes{};
  };

  bool begin();
  bool look(Open& open);
  bool look_for_data(Open& open);
  void check(Open& open);

  Guarded<RecvComm>* comm_ = nullptr;
  std::vector<Open> open_;
};

class Sender final : public End {
 public:
  Sender(Process& process, Nics& nics, Payload& payload, const TrafficOptions& options,
         std::unique_ptr<Connection> connection, const CommOptions& comm_options);
  ~Sender() override;

  // Until then it sends as fast as it can.
  void rush_until(std::int64_t when_ns) noexcept { rush_until_ns_ = when_ns; }
  // When it may send next; 0: now.
  std::int64_t next_send_ns() const noexcept { return next_send_ns_; }
  // To check that a send is done only when its message has been placed.
  void set_peer(const Receiver* peer) noexcept { peer_ = peer; }
  void burst(Burst burst) override;
  void close() override;
  bool is_idle() const noexcept override { return open_.empty() && part_ == 0; }
  Comm& comm() noexcept override { return *comm_; }

 private:
  friend class End;

  struct Open {
    void* request = nullptr;
    Slot slot;
    std::uint32_t bytes = 0;
  };

  bool begin();
  bool look(Open& open);

  Guarded<SendComm>* comm_ = nullptr;
  const Receiver* peer_ = nullptr;
  Group group_;
  std::uint32_t part_ = 0;  // of the group, that is sent next
  std::int64_t next_send_ns_ = 0;
  std::int64_t rush_until_ns_ = 0;
  std::vector<Open> open_;
};

}  // namespace beeline::simulation
