// SPDX-License-Identifier: Apache-2.0
//
// One run: hosts with processes, channels and comms between them, the faults of a schedule, and the
// oracles that say whether the plugin has kept its promises.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/simulation/application.h"
#include "tests/plugin/simulation/schedule.h"

namespace beeline::simulation {

struct RunResult {
  std::string violation;  // empty: all promises were kept
  std::string ending;     // why a comm has ended, if one has
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t steps = 0;
  std::int64_t simulated_ns = 0;
  std::uint64_t hash = 0;           // of all that happened; equal runs have equal ones
  std::uint32_t ended = 0;          // comms that ended with an error
  std::int64_t last_end_ns = 0;     // of these, since the start
  std::int64_t longest_gap_ns = 0;  // between two receives of a comm that were done
  std::uint64_t moves = 0;  // lines of the log about paths that have moved to other queue pairs
  std::int64_t longest_late_gap_ns = 0;  // the same, in the second half of faults_ms and later
};

class World {
 public:
  explicit World(const RunOptions& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  RunResult run();

 private:
  struct Pair {
    std::unique_ptr<Sender> sender;
    std::unique_ptr<Receiver> receiver;
    bool has_ended() const { return sender->has_ended() || receiver->has_ended(); }
  };

  static constexpr std::int64_t kNever = INT64_MAX;
  // When the application of a host makes calls next, besides its regular looks.
  struct Turns {
    std::int64_t wakes_ns = kNever;
    std::int64_t sends_ns = kNever;
  };

  void make_hosts();
  void connect(std::uint32_t number);
  Channel& channel_between(const Process& one, const Process& other);
  void check_service(const Process& process);
  void rush();
  // The application of the host makes calls soon, because something has happened.
  void wake(std::uint32_t host);
  void wake_at(std::uint32_t host, std::int64_t when_ns);
  void send_at(std::uint32_t host, std::int64_t when_ns);
  void look(std::uint32_t host);
  void burst(std::uint32_t host, End::Burst burst);
  void begin(const Fault& fault);
  void end(const Fault& fault);
  void end_all();
  void run_until(std::int64_t until_ns);
  // All comms have to finish what they have begun.
  void finish();
  void close_all();
  // Whether all comms have moved since then, with all their paths.
  bool has_recovered(const std::vector<std::uint64_t>& progress) const;
  bool are_idle() const;
  bool may_end() const noexcept;
  void check_ends();
  void note(std::uint64_t what) noexcept { hash_ = mix(hash_ ^ what); }
  std::uint64_t key_of(std::uint32_t host, std::uint32_t nic) const noexcept {
    return host * 16 + nic;
  }

  RunOptions options_;
  Agenda agenda_;
  Network network_;
  Payload payload_;
  Nics nics_;
  ControlOptions control_;
  Draws draws_;
  std::int64_t start_ns_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::vector<const Device*>> devices_;  // of comms, by host
  std::vector<Pair> pairs_;
  std::vector<Turns> turns_;  // by host
  std::uint32_t last_comm_ = 0;
  std::uint64_t hash_ = 0;
  bool is_over_ = false;
  bool checks_service_ = true;
};

}  // namespace beeline::simulation
