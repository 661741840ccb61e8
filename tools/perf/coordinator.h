// SPDX-License-Identifier: Apache-2.0
//
// The process to which the ranks report. It combines what they gather, prints the results, and
// detects a rank that failed, died or hangs. It does not load the plugin.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/perf/line.h"
#include "tools/perf/report.h"

namespace beeline::perf {

// A rank that was started by this process, or one that connected.
struct Member {
  Line line;
  pid_t pid = 0;  // 0: not a child of ours
};

class Coordinator {
 public:
  Coordinator(const Options& options, const Pattern& pattern, std::vector<Member> members);
  // Kills the ranks that are still running.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Returns when all ranks are done, or when one has failed. The result is the exit status of the
  // command.
  int run();

 private:
  struct Seat {
    Member member;
    bool done = false;    // it said so, or it failed
    std::string at = {};  // what it gathers for, if it does
    std::optional<std::string> part = {};
    std::optional<RankFacts> facts = {};
    std::optional<Status> status = {};
    std::deque<Row> rows = {};
  };
  struct Trouble {
    std::string text;
    int code;
    bool death;
  };

  bool over() const;
  std::int64_t grace_ns() const;
  void poll_lines();
  void serve(size_t rank);
  void take_frames(size_t rank);
  void handle(size_t rank, const Frame& frame);
  void take_failure(size_t rank, const std::string& body);
  void refuse(size_t rank);
  void take_status(size_t rank, const std::string& body);
  void try_begin();
  void try_rows();
  void try_gather();
  void on_hang_up(size_t rank);
  void check_hang();
  void wait_for_exits();
  void end_ranks();
  int tell_trouble();
  std::string doing(size_t rank) const;
  void show_progress();
  void clear_progress();

  const Options& options_;
  std::vector<Seat> seats_;
  Report report_;
  bool begun_ = false;
  std::vector<Trouble> troubles_;
  const std::int64_t started_ns_;
  std::int64_t progress_ns_;  // when something last went on
  std::int64_t trouble_ns_ = 0;
  bool line_shown_ = false;
};

}  // namespace beeline::perf
