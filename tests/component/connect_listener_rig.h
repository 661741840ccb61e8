// SPDX-License-Identifier: Apache-2.0
//
// A listening plane that clients come to, and the peer that is waited for.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "tests/component/connect_raw_peer.h"

namespace beeline::test {

// The kernel takes a peer that has not read for peer_timeout for dead, and a busy machine may take
// longer to write what is to go unread.
inline ControlOptions long_peer_timeout() {
  ControlOptions options = control_options();
  options.peer_timeout = 20 * kPatience;
  return options;
}

// A listener, and the peer that is to come.
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

  // A CONNECT as a peer of this fabric says it, from a queue pair that is not there any more.
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
