// SPDX-License-Identifier: Apache-2.0
//
// One end of a comm while it is being made: the memory that belongs to the comm, and its paths.
#pragma once

#include <span>
#include <vector>

#include "plugin/connect/path/path_setup.h"

namespace beeline {

class CommEnd {
 public:
  // Without paths.
  static Result<CommEnd> create(const CommPlan& plan);

  // Registers the memory with the device and makes a path's queues there. The paths are the rails
  // of the comm, in the order in which they are added.
  Status add_path(const Device& device, const QpOptions& options);

  std::span<PathSetup> paths() noexcept { return paths_; }
  std::span<const PathSetup> paths() const noexcept { return paths_; }
  bool is_connected() const noexcept;  // all paths

  // The part of the memory that the peer may write to.
  wire::Window window() const noexcept;

  // Moves everything into a connection, which has no link yet.
  Connection finish(Role role, const wire::Window& peer_window) &&;

 private:
  explicit CommEnd(const CommPlan& plan) noexcept : plan_(plan) {}

  CommPlan plan_;
  ControlBlock memory_;
  CommMemory comm_;
  std::vector<PathSetup> paths_;  // after the memory that their devices write to
};

}  // namespace beeline
