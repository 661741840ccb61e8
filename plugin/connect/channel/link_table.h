// SPDX-License-Identifier: Apache-2.0
//
// The comms that use one channel, by this process's number of each.
//
// If the channel can be resumed, a comm that this process has closed stays in the table until its
// peer has closed it, too: the goodbye may be lost with the channel, and then it has to be said
// again. Such an entry is called closed here.
// Threads: the control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/check/assert.h"
#include "plugin/connect/comm/comm_link.h"
#include "plugin/wire/message.h"

namespace beeline {

class LinkTable {
 public:
  void add(const std::shared_ptr<CommLink>& link) {
    BL_ASSERT(!entries_.contains(link->numbers().ours), "each comm has a number of its own");
    entries_[link->numbers().ours].link = link;
  }
  // The READY that was sent for this comm. It may be lost with the channel.
  void keep_ready(std::uint32_t ours, wire::Ready ready) {
    entries_.at(ours).ready = std::move(ready);
  }
  // Null if there is no such link, or its comm is closed.
  std::shared_ptr<CommLink> find(std::uint32_t ours) const;
  std::size_t size() const noexcept { return entries_.size(); }
  // Whether anything may still have to be said or heard: neither end of a comm has closed it, or
  // this end has, and the peer may not know.
  bool needs_channel() const noexcept;

  // The links of all comms that are not closed.
  std::vector<std::shared_ptr<CommLink>> all() const;
  // Returns how many links were open until now.
  std::size_t kill(const std::string& cause);
  void lose_device(const DeviceContext& device);
  // The sum of Link::progress() of those that are open.
  std::uint64_t progress() const;

  // The link is destroyed. `keep`: its entry stays, as closed, until the peer has closed it.
  // Returns true if it stays.
  bool close(const GoneLink& link, bool keep);

  void on_goodbye(const wire::Goodbye& goodbye);
  // The peer's end is no more, without a goodbye.
  void on_given_up(std::uint32_t ours);
  // Says GOODBYE if the comm is closed. Returns false if there is no such entry.
  bool answer_for(std::uint32_t ours, MessageSink& outbox) const;
  // Tells the peer how each comm stands, and asks the same.
  void say_again(MessageSink& outbox) const;
  void say_closed(std::uint32_t ours, MessageSink& outbox) const;

 private:
  struct Entry {
    std::weak_ptr<CommLink> link;
    std::optional<wire::Ready> ready;
    bool is_closed = false;       // the link was destroyed
    bool is_peer_closed = false;  // the peer wants no goodbye
    wire::Goodbye goodbye;        // if closed
  };

  std::map<std::uint32_t, Entry> entries_;
};

}  // namespace beeline
