// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/flow.h"

#include <deque>
#include <thread>

namespace beeline::test {
namespace {

enum class Close { kTogether, kAlone };

constexpr size_t kMostUnderWay = 8;  // requests, while sending or receiving until an error

// NCCL sets connections up in its service thread and moves data in another.
template <class Make>
Comm in_service_thread(Make&& make) {
  Comm comm;
  std::exception_ptr failure;
  std::thread service([&] {
    try {
      comm = make();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  service.join();
  if (failure) std::rethrow_exception(failure);
  return comm;
}

void nothing(Peer&) {}

void run(const Way& way, const PeerBody& before, const SenderBody& sender,
         const ReceiverBody& receiver, Close how) {
  const auto close = [how](End& end) {
    if (how == Close::kTogether) end.peer.meet();
    if (end.comm) end.comm.close();
  };
  run_two(
      way.mode,
      [&](Peer& peer) {
        before(peer);
        const Session session(way.abi);
        Sender end{
            {peer, session, in_service_thread([&] { return connect_to_peer(peer, session, 0); })}};
        sender(end);
        close(end);
      },
      [&](Peer& peer) {
        before(peer);
        const Session session(way.abi);
        Receiver end{{peer, session, in_service_thread([&] {
                        return accept_from_peer(peer, session, last_device(session));
                      })}};
        receiver(end);
        close(end);
      });
}

// Polls as often as a thread with a processor of its own would, even on a busy machine: the plugin
// may measure time by the number of polls.
ncclResult_t poll_eagerly(Request& request) {
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < 256 && result == ncclSuccess && !request.is_done(); ++i) {
    result = request.try_poll();
  }
  return result;
}

// Keeps several requests in flight until one cannot be posted or fails.
template <class Post>
ncclResult_t post_until_error(Post&& post) {
  ncclResult_t result = ncclSuccess;
  std::deque<Request> requests;
  wait_until(
      [&] {
        Request request;
        if (requests.size() < kMostUnderWay) {
          std::tie(result, request) = post();
          if (request) requests.push_back(request);
        }
        if (result == ncclSuccess && !requests.empty()) {
          result = poll_eagerly(requests.front());
          if (requests.front().is_done()) requests.pop_front();
        }
        return result != ncclSuccess;
      },
      "an error");
  return result;
}

}  // namespace

void run_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver) {
  run(way, nothing, sender, receiver, Close::kTogether);
}

void run_flow(const Way& way, const PeerBody& before, const SenderBody& sender,
              const ReceiverBody& receiver) {
  run(way, before, sender, receiver, Close::kTogether);
}

void run_loose_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver) {
  run(way, nothing, sender, receiver, Close::kAlone);
}

void send_messages(const Sender& end, size_t size, uint32_t count,
                   const std::function<void(uint32_t)>& before) {
  Buffer memory(end, kMostUnderWay * size);
  std::deque<Request> under_way;
  for (uint32_t i = 0; i < count; ++i) {
    before(i);
    if (under_way.size() == kMostUnderWay) {
      under_way.front().finish();
      under_way.pop_front();
    }
    const size_t place = i % kMostUnderWay * size;
    memory.fill(place, size, i);
    under_way.push_back(end.send(memory.part(place, size)));
  }
  for (Request& request : under_way) request.finish();
}

void receive_messages(const Receiver& end, size_t size, uint32_t count,
                      const std::function<void(uint32_t)>& before) {
  Buffer memory(end, kMostUnderWay * size);
  std::deque<Request> under_way;
  uint32_t arrived = 0;
  const auto finish_oldest = [&] {
    under_way.front().finish();
    BL_MUST(under_way.front().size() == size);
    under_way.pop_front();
    const size_t place = arrived % kMostUnderWay * size;
    memory.expect(place, size, arrived++);
    memory.must_hold(place, size);
  };
  for (uint32_t i = 0; i < count; ++i) {
    before(i);
    if (under_way.size() == kMostUnderWay) finish_oldest();
    under_way.push_back(end.receive(memory.part(i % kMostUnderWay * size, size)));
  }
  while (!under_way.empty()) finish_oldest();
  memory.must_hold();
}

ncclResult_t send_until_error(const Sender& end, const Part& part) {
  return post_until_error([&] { return any_isend(end.net(), end.comm, part); });
}

ncclResult_t receive_until_error(const Receiver& end, const Part& part) {
  return post_until_error([&] { return any_irecv(end.net(), end.comm, std::span(&part, 1)); });
}

ncclResult_t poll_until_error(Request& request) {
  ncclResult_t result = ncclSuccess;
  wait_until([&] { return (result = request.try_poll()) != ncclSuccess; }, "an error");
  return result;
}

void must_stay_broken(const Sender& end, const Part& part) {
  for (int i = 0; i < 10; ++i) BL_MUST(any_isend(end.net(), end.comm, part).first != ncclSuccess);
}

void must_stay_broken(const Receiver& end, const Part& part) {
  for (int i = 0; i < 10; ++i) {
    BL_MUST(any_irecv(end.net(), end.comm, std::span(&part, 1)).first != ncclSuccess);
  }
}

void run_beside(const Service& service, const End& end, const std::function<void()>& body) {
  std::atomic<bool> over = false;
  std::exception_ptr in_service;
  std::thread thread([&] {
    try {
      service(end, over);
    } catch (...) {
      in_service = std::current_exception();
    }
  });
  std::exception_ptr in_body;
  try {
    body();
  } catch (...) {
    in_body = std::current_exception();
  }
  over = true;
  thread.join();
  if (in_body) std::rethrow_exception(in_body);
  if (in_service) std::rethrow_exception(in_service);
}

bool either_warns(Peer& peer, const std::vector<std::string>& parts) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  const auto either = [&](bool mine) { return peer.exchange(mine) || mine; };
  while (!either(has_warned(parts))) {
    if (either(Clock::now() > deadline)) return false;
  }
  return true;
}

BothWays connect_both_ways(Peer& peer, const Session& session) {
  Handle ours;
  const Comm listener = listen(session, 0, &ours);
  Handle theirs = peer.exchange(ours);
  BothWays pair;
  wait_until(
      [&] {
        if (!pair.send) {
          pair.send = Comm(session.net(), CommKind::kSend, try_connect(session, 0, theirs).comm);
        }
        if (!pair.recv) {
          pair.recv = Comm(session.net(), CommKind::kRecv, try_accept(session, listener).comm);
        }
        return pair.send && pair.recv;
      },
      "the connections");
  return pair;
}

Comm connect_to_peer(Peer& peer, const Session& session, int dev) {
  auto handle = peer.receive<Handle>(1 - peer.rank());
  return connect(session, dev, handle);
}

Comm accept_from_peer(Peer& peer, const Session& session, int dev) {
  Handle handle{};
  Comm listener = listen(session, dev, &handle);
  peer.send(1 - peer.rank(), handle);
  Comm comm = accept(session, listener);
  listener.close();
  return comm;
}

}  // namespace beeline::test
