// SPDX-License-Identifier: Apache-2.0
//
// A listening plane that strangers come to, and the peer that is waited for.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "tests/component/connect_stranger.h"

namespace beeline::test {

// The kernel takes a peer that has not read for peer_timeout for dead, and a busy machine may take
// longer to write what is to go unread.
inline ControlOptions patient_with_the_deaf() {
  ControlOptions options = control_options();
  options.peer_timeout = 20 * kPatience;
  return options;
}

// A listener, and the peer that is to come.
struct House {
  explicit House(ControlOptions options = control_options()) : a(*table, std::move(options)) {
    listener = a.listen(ticket);
  }
  ~House() { a.plane().close(listener); }
  House(const House&) = delete;
  House& operator=(const House&) = delete;

  void real_peer_still_comes() {
    Made sender;
    Made receiver;
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
  wire::Connect connect_like_a_peer() {
    FakeListener fake;
    Party c(*table);
    BL_MUST(must(c.connect(fake.ticket())) == nullptr);
    auto connect = fake.welcome().hear_message<wire::Connect>();
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
