// SPDX-License-Identifier: Apache-2.0
//
// A forked process and the line to it. It never outlives its parent.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "tests/gpu/outcome.h"
#include "tests/gpu/report.h"

namespace beeline::gpu {

class Child {
 public:
  // The body's return ends the process, without destructors: the driver and NCCL may have threads.
  static Outcome<Child> start(const std::function<void(const Line&)>& body);
  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills it if it still runs

  const Line& line() const noexcept { return line_; }
  // Waits until it is gone, killing it first if `by_force`. Once. "ended by signal 11 (Segmentation
  // fault)" or "exited with 0".
  std::string end(bool by_force);

 private:
  Child(pid_t pid, Line line) : pid_(pid), line_(std::move(line)) {}
  int reap(bool by_force) noexcept;

  // Moves as the line does: what has no line any more owns no process.
  pid_t pid_;
  Line line_;
};

}  // namespace beeline::gpu
