// SPDX-License-Identifier: Apache-2.0
//
// Takes a failed path out of use, and gives it a new queue pair later. The control thread moves the
// queue pair to ERROR, so that its device discards whatever still comes for it: data or grants that
// were under way can no longer change memory. What came before is in the completion queue. Two work
// requests that are posted afterwards, one on each queue, are completed behind it as flushed. Not
// all devices do that: soft RoCE of Linux 6.1 discards its receives without a completion, and soft
// iWARP accepts no more work requests. Then whoever calls poll_fence() has to stop waiting.
//
// PCIe does not order a device's writes to GPU memory with the completions that it writes to host
// memory. So a receiver then READs GPU memory that the path may have written to through the same
// device: what the READ returns comes behind those writes.
#include <cerrno>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/check/assert.h"
#include "plugin/repair/times.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {

Status Comm::fence(Path& path) {
  BL_ASSERT(gate_.is_held(), "the thread that has the comm fences its paths");
  if (!begin_records()) return fail(Errc::kNoMemory, "keep records of what has to be sent again");
  set_state(path, PathState::kFencing);
  path.fence_left = Path::kNoMarks;
  if (path.resources->device->context->is_gone()) {
    return fail(Errc::kSystem, "move a queue pair to ERROR", ENODEV);
  }
  if (path.repair == nullptr) path.repair = std::make_unique<PathRepair>();
  path.repair->fence = std::make_shared<FenceOrder>(path.resources->queues.qp);
  link_->order({.path = path.index, .generation = path.generation, .what = path.repair->fence});
  return {};
}

void Comm::post_fence_marks(Path& path) noexcept {
  ibv_send_wr send = {};
  send.wr_id = work_id::kFence;
  send.opcode = IBV_WR_RDMA_WRITE;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused_send = nullptr;
  (void)ibv_post_send(path.qp, &send, &refused_send);
  ibv_recv_wr receive = {};
  receive.wr_id = work_id::kFence;
  ibv_recv_wr* refused_receive = nullptr;
  (void)ibv_post_recv(path.qp, &receive, &refused_receive);
  // If the device has refused one of them, its completion never comes, and the fence ends by time.
  path.fence_left = 2;
}

bool Comm::begin_records() {
  if (has_several_paths()) return true;
  if (!keep_records()) return false;
  gate_.set_has_several_paths();
  return true;
}

bool Comm::suspend(Path& path) {
  if (!begin_records()) return false;
  set_state(path, PathState::kFencing);
  return true;
}

void Comm::set_state(Path& path, PathState next) {
  BL_ASSERT(gate_.is_held(), "the thread that has the comm changes its paths");
  const bool has_posted = path.posts;
  const bool has_granted = path.grants;
  const bool has_counted = path.counts;
  const bool is_visible = path.is_read_back && path.fence_left == 0;
  path.set_state(next);
  if (has_counted && !path.counts)
    path.visible_ns = now_ns() + (is_visible ? 0 : times::kLongestPostedNs);
  if (has_posted && !path.posts) {
    stats_.fail_path(path.index);
    if (path.is_stand_in())  // it waits for its own device from now on
      stats_.begin_path(path.index, path.own_device().ibdev, path.own_device().port, false);
    leave_path(path);
  }
  if (!has_granted && path.grants) begin_grants(path);
}

bool Comm::join(Path& path, PathResources& made, std::uint32_t generation) {
  BL_ASSERT(gate_.is_held() && !path.posts,
            "the thread that has the comm joins a path that is not up");
  BL_ASSERT(made.queues.qp && made.queues.cq, "a path gets a queue pair and its completion queue");
  if (!swap_resources(path, made)) return false;
  take_resources(path);
  if (path.repair != nullptr) path.repair->writes_in_band = false;
  const Device& device = *path.resources->device;
  for (Path& other : paths()) {
    if (other.rail == path.rail) other.rail_device = &device;
  }
  path.generation = static_cast<std::uint8_t>(generation);
  path.set_state(role_ == Role::kSend ? PathState::kUp : PathState::kAnswered);
  stats_.restore_path(path.index, device.ibdev, device.port);
  on_joined(path);
  return true;
}

Comm::FenceState Comm::poll_fence(Path& path) {
  if (path.posts) return FenceState::kOrdered;
  bool is_ordered = false;
  if (path.repair != nullptr && path.repair->fence != nullptr) {
    const FenceOrder::State state = path.repair->fence->state();
    is_ordered = state == FenceOrder::State::kWaits || state == FenceOrder::State::kRuns;
    if (!is_ordered) path.repair->fence.reset();
    if (state == FenceOrder::State::kInError) post_fence_marks(path);
  }
  // Also if the device cannot be stopped: this end reports later what it has, so it takes all
  // completions that are there.
  if (path.fence_left != 0) collect();
  if (is_ordered) return FenceState::kOrdered;
  if (path.fence_left == Path::kNoMarks) return FenceState::kRefused;
  if (path.fence_left == 0 && !path.is_read_back) {
    const std::optional<std::uint8_t> reads = read_back(path);
    if (!reads) return FenceState::kInError;
    path.is_read_back = true;
    path.fence_left = *reads;
  }
  return path.fence_left == 0 ? FenceState::kDrained : FenceState::kInError;
}

}  // namespace beeline
