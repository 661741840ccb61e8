// SPDX-License-Identifier: Apache-2.0
//
// One end of a comm while it is being made: the memory that belongs to the comm, and its paths.
#pragma once

#include <cstdint>
#include <map>

#include "plugin/connect/path/path_setup.h"

namespace beeline {

class CommEnd {
 public:
  // Without paths.
  static Result<CommEnd> create(const CommPlan& plan);

  // Makes a path's queues. The first path of a rail registers the memory with the rail's device.
  Status add_path(const PathPlace& place, const Device& device, const QpOptions& options);
  // Destroys the path's queues.
  void drop_path(std::uint8_t number) noexcept { paths_.erase(number); }

  // By number. A path stays where it is until it is dropped.
  using Paths = std::map<std::uint8_t, PathSetup>;
  Paths& paths() noexcept { return paths_; }
  const Paths& paths() const noexcept { return paths_; }
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
  CommMemory extra_;
  Paths paths_;  // after the memory that their devices write to
};

// Adds a path that is made later. By number, in their order.
void add_missing_path(Connection& connection, const PathPlace& place, const Device& device);

}  // namespace beeline
