// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/path/comm_end.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "common/check/assert.h"
#include "plugin/connect/path/qp_options.h"

namespace beeline {
namespace {

// Written once, so that the pages exist before NCCL's thread uses them.
Result<CommMemory> make_comm_memory(std::size_t bytes) {
  if (bytes == 0) return CommMemory{};
  void* const memory = ::operator new (bytes, std::align_val_t{kCommAlignment}, std::nothrow);
  if (memory == nullptr) return fail(Errc::kNoMemory, "allocate a comm");
  std::memset(memory, 0, bytes);
  return CommMemory(static_cast<std::byte*>(memory));
}

}  // namespace

Result<CommEnd> CommEnd::create(const CommPlan& plan) {
  CommEnd made(plan);
  if (plan.memory_bytes > 0) made.memory_ = BL_TRY(ControlBlock::create(plan.memory_bytes));
  made.comm_ = BL_TRY(make_comm_memory(plan.comm_bytes));
  made.extra_ = BL_TRY(make_comm_memory(plan.extra_bytes));
  return made;
}

Status CommEnd::add_path(const PathPlace& place, const Device& device, const QpOptions& options) {
  BL_ASSERT(!paths_.contains(place.number), "a path is made once");
  ibv_sge scratch = {};
  if (memory_.size() > 0) {
    if (!memory_.has_rail(place.rail)) {
      BL_TRY(memory_.attach_rail(place.rail, device.api(), BL_TRY(device.context->pd()),
                                 control_access(plan_)));
    }
    scratch = {.addr = memory_.address(), .length = 1, .lkey = memory_.lkey(place.rail)};
  }
  paths_.emplace(place.number, BL_TRY(PathSetup::create(place, device, plan_, options, scratch)));
  return {};
}

bool CommEnd::is_connected() const noexcept {
  return std::ranges::all_of(paths_, [](const auto& entry) { return entry.second.is_connected(); });
}

wire::Window CommEnd::window() const noexcept {
  wire::Window window;
  if (plan_.window_bytes == 0) return window;
  BL_ASSERT(plan_.window_at + plan_.window_bytes <= memory_.size(), "the window is in the memory");
  window.address = memory_.address() + plan_.window_at;
  window.length = plan_.window_bytes;
  for (std::size_t rail = 0; rail < memory_.rails(); ++rail) {
    if (memory_.has_rail(rail)) window.rkeys[rail] = memory_.rkey(rail);
  }
  return window;
}

Connection CommEnd::finish(Role role, const wire::Window& peer_window) && {
  BL_ASSERT(!paths_.empty(), "a connection has one path at least");
  Connection connection;
  connection.role = role;
  connection.memory = std::move(memory_);
  connection.comm = std::move(comm_);
  connection.extra = std::move(extra_);
  connection.window = {
      .address = peer_window.address, .length = peer_window.length, .rkeys = peer_window.rkeys};
  connection.paths.reserve(paths_.size());
  for (auto& [number, path] : paths_) connection.paths.push_back(std::move(path).finish());
  return connection;
}

void add_missing_path(Connection& connection, const PathPlace& place, const Device& device) {
  BL_ASSERT(place.number <= connection.paths.size(), "paths are added by number");
  PathResources path;
  path.device = &device;
  path.rail = place.rail;
  path.peer_rail = place.peer_rail;
  path.speed_mbps = connection.paths.front().speed_mbps;  // until it is known
  connection.paths.insert(connection.paths.begin() + place.number, std::move(path));
}

}  // namespace beeline
