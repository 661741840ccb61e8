// SPDX-License-Identifier: Apache-2.0
//
// A control plane with a listener, for tests in which raw sockets connect to it before, or while, a
// real peer does.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "tests/plugin/component/connect_raw_peer.h"

namespace beeline::test {

// The kernel drops a peer that has not read for peer_timeout. On a busy machine, writing the data
// that is to stay unread may take longer than the usual timeout.
inline ControlOptions long_peer_timeout() {
  ControlOptions options = control_options();
  options.peer_timeout = 20 * kPatience;
  return options;
}

// Process a listens; process b is the real peer.
struct ListenerRig {
  explicit ListenerRig(ControlOptions options = control_options()) : a(*table, std::move(options)) {
    listener = a.listen(ticket);
  }
  ~ListenerRig() { a.plane().close(listener); }
  ListenerRig(const ListenerRig&) = delete;
  ListenerRig& operator=(const ListenerRig&) = delete;

  void must_accept_real_peer() {
    ConnectionPtr sender;
    ConnectionPtr receiver;
    wait_for(
        [&] {
          if (sender == nullptr) sender = must(b.connect(ticket));
          if (receiver == nullptr) receiver = must(a.accept(listener));
          return sender != nullptr && receiver != nullptr;
        },
        "the real peer");
    prove_write(*receiver, *sender);
    receiver->link->send_goodbye(0);
    sender->link->send_goodbye(0);
  }

  // A valid CONNECT to this listener, from a queue pair that no longer exists.
  wire::Connect connect_of_real_peer() {
    FakeListener fake;
    Party c(*table);
    BL_MUST(must(c.connect(fake.ticket())) == nullptr);
    auto connect = fake.welcome().receive_message<wire::Connect>();
    const wire::Handle handle = handle_of(ticket);
    connect.listener = handle.listener;
    connect.token = handle.token;
    return connect;
  }

  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  LogCapture log;
  Party a;
  Party b{*table};
  Ticket ticket;
  Listener* listener = nullptr;
};

}  // namespace beeline::test
