// SPDX-License-Identifier: Apache-2.0
//
// Requests: isend and irecv when there is no room yet, test in any order, and invalid arguments.
#include <algorithm>
#include <cstdint>

#include "tests/contract/flow.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kRequestSize = 256;

}  // namespace

TEST_CASE("request: a send without a receive returns no request", "[contract][request]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  run_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kRequestSize);
        memory.fill(0, kRequestSize, 1);
        const Part part = memory.all();
        for (int i = 0; i < 1000; ++i) BL_MUST(!end.try_send(part));
        end.peer.meet();
        end.send(part).finish();
        end.peer.meet();
        for (int i = 0; i < 1000; ++i) BL_MUST(!end.try_send(part));
      },
      [](Receiver& end) {
        Buffer memory(end, kRequestSize);
        memory.expect(0, kRequestSize, 1);
        end.peer.meet();
        end.receive(memory.all()).finish();
        memory.must_hold();
        end.peer.meet();
      });
}

TEST_CASE("request: with too many receives, irecv returns no request, and none is lost",
          "[contract][request]") {
  const Way way = GENERATE(from_range(ways()));
  const size_t parts_in_group = GENERATE(size_t{1}, size_t{8});
  CAPTURE(way, parts_in_group);
  constexpr size_t kMost = 2048;
  run_flow(
      way,
      [&](Sender& end) {
        Buffer memory(end, kRequestSize);
        memory.fill(0, kRequestSize, 1);
        const auto posted = end.peer.receive<size_t>(1);
        for (size_t i = 0; i < posted * parts_in_group; ++i) {
          end.send(memory.all()).finish();
        }
      },
      [&](Receiver& end) {
        Buffer memory(end, kMost * kRequestSize);
        std::vector<Request> requests;
        const auto place = [&](size_t group, size_t part) {
          return (group * parts_in_group + part) % kMost * kRequestSize;
        };
        const auto next = [&] {
          std::vector<Part> parts;
          for (size_t i = 0; i < parts_in_group; ++i) {
            parts.push_back(memory.part(place(requests.size(), i), kRequestSize));
          }
          return parts;
        };
        const size_t sure =
            std::min(size_t{NCCL_NET_MAX_REQUESTS}, kBuffersInFlight / parts_in_group);
        for (size_t i = 0; i < sure; ++i) requests.push_back(end.receive(next()));
        // Until there is no more room, and a few more attempts.
        for (int refused = 0; refused < 10;) {
          BL_MUST(requests.size() < kMost / parts_in_group);
          const Request request = end.try_receive(next());
          if (request) requests.push_back(request);
          refused = request ? 0 : refused + 1;
        }
        const size_t first = requests.size();
        end.peer.send(0, first + 1);
        finish_all(std::span(requests).first(1));
        requests.push_back(end.receive(next()));  // one is done, so there is room for another
        finish_all(requests);
        for (size_t group = 0; group <= first; ++group) {
          for (size_t i = 0; i < parts_in_group; ++i)
            memory.expect(place(group, i), kRequestSize, 1);
        }
        memory.must_hold();
      });
}

TEST_CASE("request: sends are taken as long as receives wait for them", "[contract][request]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr size_t kRequests = NCCL_NET_MAX_REQUESTS;
  run_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kRequests * kRequestSize);
        end.peer.meet();
        std::vector<Request> requests;
        for (size_t i = 0; i < kRequests; ++i) {
          memory.fill(i * kRequestSize, kRequestSize, static_cast<uint32_t>(i));
          requests.push_back(end.send(memory.part(i * kRequestSize, kRequestSize)));
        }
        // NCCL tests the oldest request first, but is free to use another order.
        std::reverse(requests.begin(), requests.end());
        for (Request& request : requests) request.finish();
      },
      [](Receiver& end) {
        Buffer memory(end, kRequests * kRequestSize);
        std::vector<Request> requests;
        for (size_t i = 0; i < kRequests; ++i) {
          requests.push_back(end.receive(memory.part(i * kRequestSize, kRequestSize)));
        }
        end.peer.meet();
        std::reverse(requests.begin(), requests.end());
        for (Request& request : requests) request.finish();
        for (size_t i = 0; i < kRequests; ++i) {
          memory.expect(i * kRequestSize, kRequestSize, static_cast<uint32_t>(i));
        }
        memory.must_hold();
      });
}

TEST_CASE("request: test accepts NULL for the sizes", "[contract][request]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  const auto finish_without_sizes = [](Net& net, const Request& request) {
    int done = 0;
    wait_until(
        [&] {
          BL_MUST_SUCCEED(net.test(request.raw(), &done, nullptr));
          return done == 1;
        },
        "a request");
  };
  run_flow(
      way,
      [&](Sender& end) {
        Buffer memory(end, kRequestSize);
        memory.fill(0, kRequestSize, 1);
        for (int i = 0; i < 3; ++i) {
          finish_without_sizes(end.net(), end.send(memory.all(i)));
        }
      },
      [&](Receiver& end) {
        Buffer memory(end, 3 * kRequestSize);
        std::vector<Part> parts;
        for (size_t i = 0; i < 3; ++i) {
          parts.push_back(memory.part(i * kRequestSize, kRequestSize, static_cast<int>(i)));
          memory.expect(i * kRequestSize, kRequestSize, 1);
        }
        finish_without_sizes(end.net(), end.receive(parts));
        memory.must_hold();
      });
}

TEST_CASE("request: testing any request makes the whole comm progress", "[contract][request]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr size_t kRequests = 8;
  constexpr size_t kBig = 1U << 20;
  run_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kBig);
        memory.fill(0, kBig, 1);
        std::vector<Request> requests;
        for (size_t i = 0; i < kRequests; ++i) {
          requests.push_back(end.send(memory.all()));
        }
        for (Request& request : requests) request.finish();
      },
      [](Receiver& end) {
        Buffer memory(end, kRequests * kBig);
        std::vector<Request> requests;
        for (size_t i = 0; i < kRequests; ++i) {
          requests.push_back(end.receive(memory.part(i * kBig, kBig)));
          memory.expect(i * kBig, kBig, 1);
        }
        // The last can only complete if testing it also advances the earlier ones.
        requests.back().finish();
        for (Request& request : requests) request.finish();
        memory.must_hold();
      });
}

TEST_CASE("request: invalid arguments are refused, and no request is lost", "[contract][request]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Net& net = session.net();
    const Link link = link_to_self(session);
    Memory memory(2 * kRequestSize);
    memory.fill(0, kRequestSize, 1);
    memory.expect(kRequestSize, kRequestSize, 1);
    const Mr send_mr(net, link.send, memory);
    const Mr recv_mr(net, link.recv, memory);
    const Part from{memory.at(), kRequestSize, 0, send_mr.raw()};
    const Part to{memory.at(kRequestSize), kRequestSize, 0, recv_mr.raw()};
    Request receive = irecv(net, link.recv, to);
    const auto refuse_send = [&](const Comm& comm, size_t size, void* mhandle) {
      const Part part{memory.at(), size, 0, mhandle};
      BL_MUST(any_isend(net, comm, part).first == ncclInvalidArgument);
    };
    const auto refuse_receive = [&](const Comm& comm, const std::vector<Part>& parts) {
      BL_MUST(any_irecv(net, comm, parts).first == ncclInvalidArgument);
    };
    // The first two are negative in versions that use an int.
    for (const size_t size : {SIZE_MAX, static_cast<size_t>(INT32_MIN), (size_t{1} << 30) + 1}) {
      refuse_send(link.send, size, send_mr.raw());
      refuse_receive(link.recv, {{memory.at(), size, 0, recv_mr.raw()}});
      refuse_receive(link.recv, {to, {memory.at(), size, 0, recv_mr.raw()}});
    }
    refuse_send(link.send, kRequestSize, nullptr);
    refuse_send(link.recv, kRequestSize, recv_mr.raw());
    refuse_receive(link.recv, {{memory.at(), kRequestSize, 0, nullptr}});
    refuse_receive(link.send, {{memory.at(), kRequestSize, 0, send_mr.raw()}});
    refuse_receive(link.recv, {});
    refuse_receive(link.recv, std::vector<Part>(9, to));
    refuse_receive(link.recv, std::vector<Part>(64, to));
    Request send = isend(net, link.send, from);
    finish_both(send, receive);
    BL_MUST(receive.size() == kRequestSize);
    memory.must_hold();
    must_carry(net, link, 2);
  });
}

TEST_CASE("request: a NULL output argument is an error, not a crash", "[contract][request]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Net& net = session.net();
    const Link link = link_to_self(session);
    Memory memory(kRequestSize);
    const Mr send_mr(net, link.send, memory);
    const Mr recv_mr(net, link.recv, memory);
    Handle handle{};
    Comm listener = listen(session, 0, &handle);
    void* data = memory.at();
    void* mhandle = recv_mr.raw();
    void* place = &place;
    size_t size = kRequestSize;
    int tag = 0;
    int done = 0;
    const auto wrong = [](ncclResult_t result) { BL_MUST(result == ncclInvalidArgument); };
    wrong(net.isend(link.send.raw(), data, size, tag, send_mr.raw(), nullptr));
    wrong(net.irecv(link.recv.raw(), 1, &data, &size, &tag, &mhandle, nullptr));
    wrong(net.irecv(link.recv.raw(), 1, nullptr, &size, &tag, &mhandle, &place));
    BL_MUST(place == nullptr);
    wrong(net.isend(nullptr, data, size, tag, send_mr.raw(), &(place = &done)));
    BL_MUST(place == nullptr);
    wrong(net.irecv(nullptr, 1, &data, &size, &tag, &mhandle, &(place = &done)));
    BL_MUST(place == nullptr);
    wrong(net.test(nullptr, &done, nullptr));
    wrong(net.iflush(link.recv.raw(), 1, &data, nullptr, &mhandle, nullptr));
    wrong(net.reg_mr(link.send.raw(), data, size, NCCL_PTR_HOST, nullptr));
    wrong(net.reg_mr(nullptr, data, size, NCCL_PTR_HOST, &(place = &done)));
    BL_MUST(place == nullptr);
    wrong(net.listen(session.context(), 0, nullptr, &(place = &done)));
    BL_MUST(place == nullptr);
    wrong(net.listen(session.context(), 0, handle.bytes.data(), nullptr));
    wrong(net.connect(session.context(), 0, nullptr, &(place = &done), nullptr));
    BL_MUST(place == nullptr);
    wrong(net.connect(session.context(), 0, handle.bytes.data(), nullptr, nullptr));
    wrong(net.accept(nullptr, &(place = &done), nullptr));
    BL_MUST(place == nullptr);
    wrong(net.accept(listener.raw(), nullptr, nullptr));
    wrong(net.devices(nullptr));
    must_carry(net, link, 1);
  });
}
