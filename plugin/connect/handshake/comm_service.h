// SPDX-License-Identifier: Apache-2.0
//
// The control thread serves open comms that NCCL does not call, when there is news for them or the
// time has come, and makes their paths anew.
//
// Threads: the control thread.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/handshake/path_remaker.h"
#include "plugin/verbs/async_event.h"

namespace beeline {

class CommService {
 public:
  explicit CommService(const RemakeContext& context)
      : timers_(context.timers),
        ports_(context.ports),
        remaker_(context, [this](const auto& link) { serve(link); }) {}

  PathRemaker& remaker() noexcept { return remaker_; }

  void take(LinkOrder order);
  bool has_orders() const noexcept { return !orders_.empty(); }
  // As many as one turn allows.
  void carry_out_orders();
  // Sees to it that the comm takes its mail, and does what is due: its own thread may not call for
  // long. Sets a timer unless there is nothing left to do.
  void serve(const std::shared_ptr<CommLink>& link);
  void serve_all(const std::vector<std::shared_ptr<CommLink>>& links);
  // Serves those that peers have written to in-band: an application that makes no calls does not
  // look.
  void look_for_messages(const std::vector<std::shared_ptr<CommLink>>& links);
  // Whether a queue of this process does not work any more, by no fault of a peer: a peer that
  // closes may cause the other events of queue pairs.
  static bool is_queue_error(const verbs::AsyncEvent& event) noexcept {
    return event.type == IBV_EVENT_QP_FATAL || event.type == IBV_EVENT_CQ_ERR;
  }
  // Tells the comm whose queue pair, or completion queue, the event is about.
  void on_queue_error(const std::vector<std::shared_ptr<CommLink>>& links,
                      const DeviceContext& context, const verbs::AsyncEvent& event);
  // Whether there are links, and none of the devices that they use has an active port.
  bool are_ports_down(const std::vector<std::shared_ptr<CommLink>>& links);
  // Whether a path that uses the port may have failed, or may work again.
  static bool is_about_paths(verbs::EventKind kind) noexcept;

 private:
  Timers* timers_;
  PortSource* ports_;
  std::deque<LinkOrder> orders_;  // about paths
  PathRemaker remaker_;
};

}  // namespace beeline
