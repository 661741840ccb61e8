// SPDX-License-Identifier: Apache-2.0
//
// Runs a connected sender and receiver, each in a thread or a process of its own. Most tests that
// move data are made of this.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "tests/plugin/contract/session.h"
#include "tests/plugin/contract/world.h"

namespace beeline::test {

// A comm takes at least so many receive buffers before it asks to call again (decision 0019).
inline constexpr size_t kBuffersInFlight = 128;

// One end of a connection: the sender has a send comm, the receiver a receive comm.
struct End {
  Peer& peer;
  const Session& session;
  Comm comm;

  Net& net() const noexcept { return session.net(); }
};

// Memory that is registered with a comm until drop() or the destructor.
class Buffer : public Memory {
 public:
  Buffer(Net& net, const Comm& comm, size_t size) : Memory(size), mr_(net, comm, *this) {}
  Buffer(const End& end, size_t size) : Buffer(end.net(), end.comm, size) {}

  Part part(size_t offset, size_t size, int tag = 0) const {
    return {at(offset), size, tag, mr_.raw()};
  }
  Part all(int tag = 0) const { return part(0, size(), tag); }
  void* mhandle() const noexcept { return mr_.raw(); }
  void drop() { mr_.drop(); }

 private:
  Mr mr_;
};

struct Sender : End {
  Request try_send(const Part& part) const { return try_isend(net(), comm, part); }
  Request send(const Part& part) const { return isend(net(), comm, part); }
};

struct Receiver : End {
  Request try_receive(std::span<const Part> parts) const { return try_irecv(net(), comm, parts); }
  Request receive(std::span<const Part> parts) const { return irecv(net(), comm, parts); }
  Request receive(const Part& part) const { return irecv(net(), comm, std::span(&part, 1)); }
  Request flush(std::span<const Part> parts, std::vector<int> sizes) const {
    return iflush(net(), comm, parts, std::move(sizes));
  }
  Request flush(const Part& part, size_t received) const {
    return flush(std::span(&part, 1), {static_cast<int>(received)});
  }
};

using SenderBody = std::function<void(Sender&)>;
using ReceiverBody = std::function<void(Receiver&)>;

inline constexpr size_t kSenderRank = 0;
inline constexpr size_t kReceiverRank = 1;

// The sender is on the first device, the receiver on the last. Comms that are still open when both
// bodies have returned are closed.
void run_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver);
inline void run_flow(const SenderBody& sender, const ReceiverBody& receiver) {
  run_flow(usual_way(), sender, receiver);
}
// The same; each end calls `before` before its session begins.
void run_flow(const Way& way, const PeerBody& before, const SenderBody& sender,
              const ReceiverBody& receiver);
// The same as the first, except that the ends do not wait for each other when their bodies return.
// A body may never return.
void run_loose_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver);
inline void run_loose_flow(const SenderBody& sender, const ReceiverBody& receiver) {
  run_loose_flow(usual_way(), sender, receiver);
}

// Move so many messages of this size, several at a time, and compare every byte. The sender calls
// `before` with the number of each message.
void send_messages(
    const Sender& end, size_t size, uint32_t count,
    const std::function<void(uint32_t)>& before = [](uint32_t) {});
void receive_messages(
    const Receiver& end, size_t size, uint32_t count,
    const std::function<void(uint32_t)>& before = [](uint32_t) {});

// Send, receive or poll until that fails, and return the error.
ncclResult_t send_until_error(const Sender& end, const Part& part);
ncclResult_t receive_until_error(const Receiver& end, const Part& part);
ncclResult_t poll_until_error(Request& request);
// After an error, every call fails.
void must_stay_broken(const Sender& end, const Part& part);
void must_stay_broken(const Receiver& end, const Part& part);

// Runs `service` in another thread until the body has returned. NCCL's service thread registers
// the user's buffers in this way, on a comm that is in use.
using Service = std::function<void(const End& end, const std::atomic<bool>& over)>;
void run_beside(const Service& service, const End& end, const std::function<void()>& body);

// Both ends call it. True if the log of either end has such a warning now or soon: the plugin
// chooses which end logs it.
bool either_warns(Peer& peer, const std::vector<std::string>& parts);

// For bodies that make their own connections, in a pair of ranks.
Comm connect_to_peer(Peer& peer, const Session& session, int dev);
Comm accept_from_peer(Peer& peer, const Session& session, int dev);
inline int last_device(const Session& session) { return session.devices() - 1; }

// Both ends of two connections with the other process, one in each direction.
struct BothWays {
  Comm send;
  Comm recv;
};
BothWays connect_both_ways(Peer& peer, const Session& session);

// A session with a connection from its first device to its last.
struct LinkedSession {
  explicit LinkedSession(Abi abi = kNewest)
      : session(abi), net(session.net()), link(link_to_self(session, 0, last_device(session))) {}

  Session session;
  Net& net;
  Link link;
};

}  // namespace beeline::test
