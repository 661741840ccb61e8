// SPDX-License-Identifier: Apache-2.0
//
// The process to which the ranks report. It combines what they gather, prints the results, and
// detects a rank that failed, died or hangs. It does not load the plugin.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/progress.h"
#include "tools/perf/report.h"
#include "tools/ranks/process.h"

namespace beeline::perf {

class Coordinator {
 public:
  Coordinator(const Options& options, const Pattern& pattern,
              std::vector<ranks::Process> processes);
  // Kills the ranks that are still running.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Returns when all ranks are done, or when one has failed. The result is the exit status of the
  // command.
  int run();

 private:
  struct RankState {
    ranks::Process process;
    bool done = false;               // it has reported that, or it has failed
    std::string gathering_for = {};  // empty if it gathers nothing
    std::optional<std::string> part = {};
    std::optional<RankFacts> facts = {};
    std::optional<Status> status = {};
    std::deque<Row> rows = {};
  };
  struct RankFailure {
    std::string text;
    int code;
    bool is_death;
  };

  bool is_over() const;
  std::int64_t grace_ns() const;
  void poll_sockets();
  void serve(size_t rank);
  void take_lines(size_t rank);
  void handle(size_t rank, const std::string& line);
  void take_failure(size_t rank, const Ended& ended);
  void refuse(size_t rank);
  void take_status(size_t rank, const std::string& body);
  void try_begin();
  void try_rows();
  void try_gather();
  void on_hang_up(size_t rank);
  void check_hang();
  void wait_for_exits();
  void end_ranks();
  int report_failures();
  std::string activity_of(size_t rank) const;
  void show_progress();
  int print_devices() const;

  const Options& options_;
  std::vector<RankState> ranks_;
  Report report_;
  bool begun_ = false;
  std::vector<RankFailure> failures_;
  const std::int64_t started_ns_;
  std::int64_t progress_ns_;  // when something last went on
  std::int64_t failed_ns_ = 0;
  tools::ProgressLine progress_line_;
  std::string devices_;  // for --list
};

}  // namespace beeline::perf
