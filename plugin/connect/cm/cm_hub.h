// SPDX-License-Identifier: Apache-2.0
//
// The control thread's access to the kernel's connection manager: one event channel, which hands
// each event to the setup it belongs to (cm_setup.h), and one listening id for each local address.
//
// A connection request carries a cookie that the peer got over the control channel. A request with
// an unknown cookie is rejected.
// Threads: the control thread. Ids of connected paths belong to their comms and outlive the hub.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/port_range.h"
#include "common/base/problem.h"
#include "plugin/connect/socket/netdev_address.h"
#include "plugin/connect/socket/poller.h"
#include "plugin/device/device.h"
#include "plugin/verbs/cm_channel.h"

namespace beeline {

class CmHub {
 public:
  using EventHandler = std::function<void(const verbs::CmEvent&)>;
  using RequestHandler = std::function<void(verbs::CmId)>;

  // `library`: null if this process has none.
  CmHub(verbs::CmLibrary* library, Poller& poller, const PortRange& ports = {})
      : library_(library), poller_(&poller), ports_(ports) {}
  CmHub(const CmHub&) = delete;
  CmHub& operator=(const CmHub&) = delete;
  ~CmHub();

  Poller& poller() const noexcept { return *poller_; }

  // The addresses by which the device's queue pairs can be set up; an error if they cannot.
  Outcome<std::vector<NetdevAddress>> addresses(const Device& device);

  Outcome<verbs::CmId> make_id();
  // Listens on one of the device's addresses and returns it with the port.
  Outcome<wire::SocketAddress> listen(const Device& device, const wire::SocketAddress& address);

  // Events of an id that is not watched are dropped.
  void watch(const verbs::CmId& id, EventHandler handler);
  void forget(const void* id) noexcept { watched_.erase(id); }
  // Hands over the id of the request that carries this cookie.
  void expect(const wire::Token& cookie, RequestHandler handler);
  void forget(const wire::Token& cookie) noexcept { expected_.erase(cookie); }

 private:
  Outcome<void> open();
  void read_events();
  void dispatch(verbs::CmEvent& event);
  void on_request(verbs::CmEvent& event);
  void stop_reading() noexcept;

  verbs::CmLibrary* library_;
  Poller* poller_;
  PortRange ports_;                            // on which it listens
  std::shared_ptr<verbs::CmChannel> channel_;  // null until the first use
  Poller::Key key_ = 0;
  std::map<std::string, verbs::CmId> listeners_;  // by address
  std::map<const void*, std::shared_ptr<EventHandler>> watched_;
  std::map<wire::Token, RequestHandler> expected_;
};

}  // namespace beeline
