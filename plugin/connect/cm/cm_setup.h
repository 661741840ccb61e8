// SPDX-License-Identifier: Apache-2.0
//
// Connects one path's queue pair through the connection manager, from either side:
//
//   CmActiveSetup    kAddress -> kRoute -> kConnect -> kFirstMessage -> done
//   CmPassiveSetup   kRequest -----------------------> kFirstMessage -> done
//
// In kFirstMessage the connecting end sends a message, and the accepting end answers it. The
// connecting end is done when the answer has arrived. On iWARP it writes zero bytes to the peer
// while the answer is missing (first_message.h says why).
//
// Owned by the comm whose path it connects. The comm's timeout also ends this. The outcome is
// reported once, as the last action, and its receiver may destroy the object.
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin/connect/cm/cm_hub.h"
#include "plugin/connect/cm/cm_text.h"
#include "plugin/connect/cm/first_message.h"
#include "plugin/connect/path/path_setup.h"

namespace beeline {

class CmSetup : public std::enable_shared_from_this<CmSetup> {
 public:
  using Done = std::function<void(Outcome<void>)>;

  CmSetup(const CmSetup&) = delete;
  CmSetup& operator=(const CmSetup&) = delete;

  bool is_resolving() const noexcept { return step_ == Step::kAddress || step_ == Step::kRoute; }
  // The accepting end has done what it can until the connecting end asks for the connection.
  bool is_waiting_for_request() const noexcept { return step_ == Step::kRequest; }
  // The step that has taken too long. `limit`: "within 60 s", or empty.
  std::string timeout_text(const std::string& limit) const;

 protected:
  enum class Step : std::uint8_t { kAddress, kRoute, kConnect, kRequest, kFirstMessage };

  CmSetup(CmHub& hub, PathSetup& path, const QpOptions& options, FirstMessage::End end, CmEnds ends,
          Done done)
      : hub_(&hub),
        path_(&path),
        options_(&options),
        ends_(std::move(ends)),
        first_(path, end),
        done_(std::move(done)) {}
  ~CmSetup();

  std::string step_text() const;  // "resolving the address of h1 siw0"
  bool is_qp_moved_by_kernel() const noexcept {
    return path_->device().transport == Transport::kIwarp;
  }
  rdma_conn_param parameters(std::uint8_t reads) const noexcept;
  void take_id(verbs::CmId id);
  void await_first_message();
  virtual void on_event(const verbs::CmEvent& event) = 0;
  // Reports the outcome. Nothing of this object may be used afterwards, as after the next two.
  void finish(Outcome<void> outcome);
  void fail_step(const Error& error);
  void fail_event(const verbs::CmEvent& event);

  CmHub* hub_;
  PathSetup* path_;
  const QpOptions* options_;
  CmEnds ends_;
  FirstMessage first_;
  verbs::CmId id_;
  Step step_ = Step::kAddress;

 private:
  void poll_first_message();
  std::string writes_text() const;  // for the log, if there were any

  Done done_;
};

// The connecting end.
class CmActiveSetup final : public CmSetup {
 public:
  struct Target {
    wire::CmDestination destination;
    std::string peer;  // "h1 siw0"
    std::uint8_t reads = 0;
    std::uint8_t traffic_class = 0;
  };
  CmActiveSetup(CmHub& hub, PathSetup& path, const QpOptions& options, Target target, Done done);

  void start();

 private:
  Outcome<void> choose_addresses();
  Outcome<void> resolve();
  void connect();
  void on_event(const verbs::CmEvent& event) override;

  const Target target_;
  int attempts_ = 0;
};

// The accepting end.
class CmPassiveSetup final : public CmSetup {
 public:
  CmPassiveSetup(CmHub& hub, PathSetup& path, const QpOptions& options, std::string peer,
                 Done done);
  ~CmPassiveSetup() { hub_->forget(destination_.cookie); }

  // Returns where the peer has to connect to. `peer_addresses`: those of its device's interface.
  Outcome<wire::CmDestination> listen(const std::vector<wire::SocketAddress>& peer_addresses);

 private:
  void on_request(verbs::CmId id);
  Status accept();
  void on_event(const verbs::CmEvent& event) override;

  wire::CmDestination destination_;
};

}  // namespace beeline
