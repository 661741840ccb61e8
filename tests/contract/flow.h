// SPDX-License-Identifier: Apache-2.0
//
// The ground most data tests stand on: a sender and a receiver, connected, each with a thread or a
// process of its own.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "tests/contract/session.h"
#include "tests/contract/world.h"

namespace beeline::test {

// One end. The comm is that of its direction.
struct End {
  Peer& peer;
  const Session& session;
  Comm comm;

  Net& net() const noexcept { return session.net(); }
};

// Memory that is registered with a comm until it is dropped or destroyed.
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
};

using SenderBody = std::function<void(Sender&)>;
using ReceiverBody = std::function<void(Receiver&)>;

// The sender is rank 0 on the first device, the receiver rank 1 on the last. When both bodies have
// returned, the comms are closed, if that was not done before.
void run_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver);
// The same, where each end does something before it has the plugin begin.
void run_flow(const Way& way, const PeerBody& before, const SenderBody& sender,
              const ReceiverBody& receiver);
// The same without waiting for each other at the end, and a body may never return.
void run_loose_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver);

// How long an end may take that is to notice something.
inline std::chrono::seconds soon() { return std::chrono::seconds(is_slow() ? 20 : 5); }
// Sends, or receives, until that fails, and says with what.
ncclResult_t send_until_error(const Sender& end, const Part& part, Clock::duration patience);
ncclResult_t receive_until_error(const Receiver& end, const Part& part, Clock::duration patience);

// Another thread does its work until the body is over, as NCCL's service thread does, which
// registers the user's buffers on a comm that is in use.
using Service = std::function<void(const End& end, const std::atomic<bool>& over)>;
void run_beside(const Service& service, const End& end, const std::function<void()>& body);

// Both ends call it. True if either's log has such a warning, or comes to have it soon: which end
// speaks is the plugin's choice.
bool either_warns(Peer& peer, const std::vector<std::string>& parts);

// For bodies that make their own connections: in a pair, rank 0 sends to rank 1.
Comm connect_to_peer(Peer& peer, const Session& session, int dev);
Comm accept_from_peer(Peer& peer, const Session& session, int dev);
inline int last_device(const Session& session) { return session.devices() - 1; }

}  // namespace beeline::test
