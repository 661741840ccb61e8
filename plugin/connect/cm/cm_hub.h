// SPDX-License-Identifier: Apache-2.0
//
// The kernel's connection manager, as the control thread uses it: one channel for all events, who
// waits for which, and one listener for each address that peers were invited to.
//
// A peer's request names itself by a cookie that it got over the control channel. One that nobody
// waits for is turned down.
// Threads: the control thread. Ids outlive the hub: their connections' owners have them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin/connect/socket/netdev_address.h"
#include "plugin/connect/socket/poller.h"
#include "plugin/device/device.h"
#include "plugin/verbs/cm_channel.h"

namespace beeline {

class CmHub {
 public:
  using EventHandler = std::function<void(const verbs::CmEvent&)>;
  using RequestHandler = std::function<void(verbs::CmId)>;

  // `library` may be null: then there is none.
  CmHub(verbs::CmLibrary* library, Poller& poller) : library_(library), poller_(&poller) {}
  CmHub(const CmHub&) = delete;
  CmHub& operator=(const CmHub&) = delete;
  ~CmHub();

  Poller& poller() const noexcept { return *poller_; }

  // Whether this device's queue pairs can be set up here: the addresses to do it with. All errors
  // are texts for people.
  Result<std::vector<NetdevAddress>, std::string> addresses(const Device& device);

  Result<verbs::CmId, std::string> make_id();
  // Where peers reach the device: one of its own addresses, with a port.
  Result<wire::SocketAddress, std::string> listen(const Device& device,
                                                  const wire::SocketAddress& address);

  // Events of an id that nobody watches are of no interest.
  void watch(const verbs::CmId& id, EventHandler handler);
  void forget(const void* id) noexcept { watched_.erase(id); }
  void expect(const wire::Token& cookie, RequestHandler handler);
  void forget(const wire::Token& cookie) noexcept { expected_.erase(cookie); }

 private:
  Result<void, std::string> open();
  void read_events();
  void dispatch(verbs::CmEvent& event);
  void on_request(verbs::CmEvent& event);
  void stop_reading() noexcept;

  verbs::CmLibrary* library_;
  Poller* poller_;
  std::shared_ptr<verbs::CmChannel> channel_;  // null until it is needed
  Poller::Key key_ = 0;
  std::map<std::string, verbs::CmId> listeners_;  // by address
  std::map<const void*, std::shared_ptr<EventHandler>> watched_;
  std::map<wire::Token, RequestHandler> expected_;
};

}  // namespace beeline
