// SPDX-License-Identifier: Apache-2.0
//
// One queue pair's way through the connection manager, from either side:
//
//   CmDial    kAddress -> kRoute -> kConnect -> kGreeting -> done
//   CmAnswer  kRequest ----------------------> kGreeting -> done
//
// Owned by the attempt or the admission whose endpoint it connects, which also has the deadline.
// It tells how it ended once, as the last thing that it does, and may be destroyed by that.
// Threads: the control thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plugin/connect/cm/cm_hub.h"
#include "plugin/connect/cm/cm_words.h"
#include "plugin/connect/path/endpoint.h"

namespace beeline {

class CmCall : public std::enable_shared_from_this<CmCall> {
 public:
  // The error is a text for people.
  using Done = std::function<void(Result<void, std::string>)>;

  CmCall(const CmCall&) = delete;
  CmCall& operator=(const CmCall&) = delete;

  // Why its time is over, after `limit` ("within 60 s", or nothing).
  std::string overdue_text(const std::string& limit) const;

 protected:
  enum class Step : std::uint8_t { kAddress, kRoute, kConnect, kRequest, kGreeting };

  CmCall(CmHub& hub, Endpoint& endpoint, const QpOptions& options, CmEnds ends, Done done)
      : hub_(&hub),
        endpoint_(&endpoint),
        options_(&options),
        ends_(std::move(ends)),
        done_(std::move(done)) {}
  ~CmCall();

  const char* waits_for() const noexcept;  // "the peer's address to be resolved"
  // The kernel moves an iWARP queue pair itself.
  bool kernel_moves() const noexcept { return endpoint_->device().transport == Transport::kIwarp; }
  rdma_conn_param parameters(std::uint8_t reads) const noexcept;
  void take_id(verbs::CmId id);
  void await_greeting();
  virtual void on_event(const verbs::CmEvent& event) = 0;
  // The last word: nothing of this object may be touched afterwards.
  void finish(Result<void, std::string> outcome);
  void fail_step(const Error& error);
  void fail_event(const verbs::CmEvent& event);

  CmHub* hub_;
  Endpoint* endpoint_;
  const QpOptions* options_;
  CmEnds ends_;
  verbs::CmId id_;
  Step step_ = Step::kAddress;

 private:
  void look_for_greeting();

  Done done_;
};

// The connecting side.
class CmDial final : public CmCall {
 public:
  struct Target {
    wire::CmInvitation invitation;
    std::string peer;  // "h1 siw0"
    std::uint8_t reads = 0;
    std::uint8_t traffic_class = 0;
  };
  CmDial(CmHub& hub, Endpoint& endpoint, const QpOptions& options, Target target, Done done);

  void start();

 private:
  Result<void, std::string> choose_addresses();
  Result<void, std::string> begin();
  void connect();
  void on_event(const verbs::CmEvent& event) override;

  const Target target_;
  int attempts_ = 0;
};

// The accepting side.
class CmAnswer final : public CmCall {
 public:
  CmAnswer(CmHub& hub, Endpoint& endpoint, const QpOptions& options, std::string peer, Done done);
  ~CmAnswer() { hub_->forget(invitation_.cookie); }

  // `theirs`: what the peer has told of its addresses.
  Result<wire::CmInvitation, std::string> invite(const std::vector<wire::SocketAddress>& theirs);

 private:
  void on_request(verbs::CmId id);
  Status accept();
  void on_event(const verbs::CmEvent& event) override;

  wire::CmInvitation invitation_;
};

}  // namespace beeline
