// SPDX-License-Identifier: Apache-2.0
//
// The environment of a pattern on one rank: the plugin, the connection to the other ranks, and the
// two threads that NCCL has.
//
// Threads: the main thread runs the pattern and communicates with the coordinator. It makes only
// the calls that NCCL makes in application threads (init, devices, getProperties, finalize). The
// service thread connects and registers; the progress thread moves data. The rank's GPU is current
// in all three.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tools/perf/devices.h"
#include "tools/perf/end.h"
#include "tools/perf/row.h"
#include "tools/perf/team.h"
#include "tools/perf/worker.h"

namespace beeline::perf {

class Rank {
 public:
  Rank(const Options& options, Team& team, const RankMemory& memory, Net net,
       std::vector<Device> devices)
      : options_(options),
        team_(team),
        memory_(memory),
        net_(std::move(net)),
        devices_(std::move(devices)) {}

  const Options& options() const noexcept { return options_; }
  Team& team() noexcept { return team_; }
  int id() const noexcept { return team_.rank(); }
  int count() const noexcept { return team_.ranks(); }
  const RankMemory& memory() const noexcept { return memory_; }
  const Net& net() const noexcept { return net_; }
  const std::vector<Device>& devices() const noexcept { return devices_; }

  // Run a job on the service or progress thread, while this thread reports to the coordinator.
  Outcome<bool> on_service(Job job);
  Outcome<bool> on_progress(Job job);
  // Runs two jobs at once.
  Outcome<bool> on_both(Job service, Job progress);

  // Describes the current work to the user: "4096 bytes, measuring".
  void set_phase(std::string phase);
  const std::string& phase() const noexcept { return phase_; }

  // For a job: describes what it waits for. Empty if it does not wait.
  void note(std::string text);

  // If the rank hangs, the report contains the state of these ends.
  void watch(const End& end) { watched_.push_back(&end); }
  void unwatch_all() { watched_.clear(); }

  void report_row(const Row& row);
  // Reports wrong data to the user. Only the first few reports are shown.
  void report_wrong(const std::string& detail);

 private:
  Job on_gpu(Job job) const;
  Outcome<bool> await(Worker& worker);
  bool tell_status();
  void end_without_coordinator() const;
  std::string waiting_for();

  const Options& options_;
  Team& team_;
  const RankMemory& memory_;
  Net net_;
  std::vector<Device> devices_;
  std::vector<const End*> watched_;
  std::string phase_;
  std::mutex note_mutex_;
  std::string note_;
  int wrong_shown_ = 0;
  Worker service_{"perf-service"};
  Worker progress_{"perf-progress"};
};

}  // namespace beeline::perf
