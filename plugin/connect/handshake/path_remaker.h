// SPDX-License-Identifier: Apache-2.0
//
// Makes paths of open comms anew, as their orders say (path_mail.h): the queue pair, its connection
// along a route that is agreed on again, because the port's addresses may have changed, and a
// probe. The connection manager connects a path if it did so when the comm was made: its receiver
// answers before that is done, so that the path has to be prepared (PathOrder::prepares). When to
// do that, and what the ends tell each other, is up to the comms.
//
// Threads: the control thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/connect/cm/cm_setup.h"
#include "plugin/connect/comm/comm_link.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/handshake/control_options.h"
#include "plugin/connect/path/path_setup.h"
#include "plugin/connect/path/port_watch.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

// The objects that it shares with other parts of the control thread. Each outlives it.
struct RemakeContext {
  const ControlOptions* options = nullptr;
  PortSource* ports = nullptr;
  Timers* timers = nullptr;
  CmHub* cm = nullptr;  // null: no path is connected by the connection manager
};

class PathRemaker {
 public:
  // `on_mail` is called when there is a result for a comm.
  using OnMail = std::function<void(const std::shared_ptr<CommLink>&)>;
  PathRemaker(const RemakeContext& context, OnMail on_mail)
      : context_(context), on_mail_(std::move(on_mail)) {}
  PathRemaker(const PathRemaker&) = delete;
  PathRemaker& operator=(const PathRemaker&) = delete;

  // Notes how the paths of this comm were made. Without that, its orders are refused.
  void remember(std::uint32_t comm, const Connection& connection, const QpOptions& qp,
                const std::string& peer_host);
  void forget(std::uint32_t comm);
  void take(const std::shared_ptr<CommLink>& link, PathOrder order);
  // If the event is about a queue of this comm.
  std::optional<QueueFailed> queue_failed(std::uint32_t comm, const DeviceContext& context,
                                          const verbs::AsyncEvent& event) const;

 private:
  // How a path was made when the comm was.
  struct Origin {
    PathPlace place;
    const Device* device = nullptr;
    bool has_memory = false;  // the comm's control memory is registered with the device
    ibv_sge scratch = {};
    std::uint32_t window_key = 0;  // of this end's window; 0: there is none
    // The queues that were made last, and those before: while a path is prepared, they are in use.
    struct Made {
      const DeviceContext* context = nullptr;
      std::uint32_t qpn = 0;
      const void* cq = nullptr;
    };
    std::array<Made, 2> made = {};

    void note_queues(const PathResources& resources) noexcept;
  };
  struct Recipe {
    const CommPlan* plan = nullptr;
    QpOptions qp;
    std::string peer_host;
    // The comm's control memory.
    void* memory = nullptr;
    std::size_t memory_bytes = 0;
    unsigned access = 0;
    std::vector<Origin> paths = {};
  };
  // A path that is being made.
  struct Work {
    std::weak_ptr<CommLink> link;
    std::uint64_t number = 0;  // of this object, never used again
    std::uint32_t generation = 0;
    bool prepares = false;
    verbs::Mr control;             // see PathResources. Destroyed after the path
    std::uint32_t window_key = 0;  // of the peer's window
    std::uint32_t own_window_key = 0;
    PathSetup path;
    bool has_loopback = false;
    wire::PathAnswer answer = {};  // at the receiving end
    bool is_probed = false;        // at the sending end: to be probed before it is used
    std::int64_t deadline_ns = 0;
    std::shared_ptr<CmSetup> cm = {};  // that connects the path; null: this object does
  };
  using Key = std::pair<std::uint32_t, std::uint8_t>;  // comm and path

  // The first of these devices by which the path can be made, with the comm's buffers registered.
  Outcome<const Device*> choose_device(CommLink& link, const Recipe& recipe, std::uint8_t path,
                                       const std::vector<const Device*>& devices);
  Outcome<void> prepare(CommLink& link, const Recipe& recipe, std::uint8_t path,
                        const Device& device);
  Outcome<PathMade> make(const std::shared_ptr<CommLink>& link, const Recipe& recipe,
                         const PathOrder& order, const MakePath& wanted);
  Outcome<void> connect(const Key& key, Work& work, const Recipe& recipe,
                        const wire::PathAnswer& answer);
  // At the receiving end, where the connection manager connects the path. Completes the answer.
  Outcome<void> listen(const Key& key, Work& work, const Recipe& recipe,
                       const wire::PathOffer& offer);
  CmSetup::Done on_cm_done(const Key& key, std::uint64_t number);
  void limit_cm(const Key& key, std::uint64_t number);
  // Goes on with a path that is being connected or probed, until it is finished.
  void advance(const Key& key);
  Outcome<bool> try_connect(Work& work, const Recipe& recipe) const;
  // The path is connected, or cannot be.
  void conclude(const Key& key, const Outcome<void>& connected);
  Outcome<PathMade> finish(Work& work, const Recipe& recipe) const;
  void advance_later(const Key& key, std::int64_t when_ns);
  void deliver(const std::shared_ptr<CommLink>& link, PathMail result);
  // `which` names the path and the generation.
  void refuse(const std::shared_ptr<CommLink>& link, PathNotMade which, const Device* device,
              const Problem& why);

  RemakeContext context_;
  OnMail on_mail_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint32_t, Recipe> recipes_;  // by comm
  std::map<Key, Work> works_;
};

}  // namespace beeline
