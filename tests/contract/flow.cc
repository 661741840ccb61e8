// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/flow.h"

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
ncclResult_t post_until_error(Post&& post, Clock::duration patience) {
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
      "an error", patience);
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

ncclResult_t send_until_error(const Sender& end, const Part& part, Clock::duration patience) {
  return post_until_error([&] { return any_isend(end.net(), end.comm, part); }, patience);
}

ncclResult_t receive_until_error(const Receiver& end, const Part& part, Clock::duration patience) {
  return post_until_error([&] { return any_irecv(end.net(), end.comm, std::span(&part, 1)); },
                          patience);
}

ncclResult_t poll_until_error(Request& request, Clock::duration patience) {
  ncclResult_t result = ncclSuccess;
  wait_until([&] { return (result = request.try_poll()) != ncclSuccess; }, "an error", patience);
  return result;
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
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(2);
  const auto either = [&](bool mine) { return peer.exchange(mine) || mine; };
  while (!either(has_warned(parts))) {
    if (either(Clock::now() > deadline)) return false;
  }
  return true;
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
