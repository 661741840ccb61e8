// SPDX-License-Identifier: Apache-2.0
//
// A forked process and the socket to it. The process never outlives its parent.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "common/base/problem.h"
#include "tools/gpu_check/report.h"

namespace beeline::gpu {

class Child {
 public:
  // When the body returns, the process ends without destructors, since the driver and NCCL may have
  // threads.
  static Outcome<Child> start(const std::function<void(const ReportSocket&)>& body);
  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills it if it still runs

  const ReportSocket& socket() const noexcept { return socket_; }
  // Waits for the end of the process, after killing it if `by_force`. Call it once. Returns "ended
  // by signal 11 (Segmentation fault)" or "exited with 0".
  std::string end(bool by_force);

 private:
  Child(pid_t pid, ReportSocket socket) : pid_(pid), socket_(std::move(socket)) {}
  int reap(bool by_force) noexcept;

  // A moved-from object has no socket, and then does not own the process.
  pid_t pid_;
  ReportSocket socket_;
};

}  // namespace beeline::gpu
