// SPDX-License-Identifier: Apache-2.0
//
// Requests: isend and irecv when there is no room yet, test in any order, and invalid arguments.
#include <algorithm>
#include <array>
#include <cstdint>

#include "tests/plugin/contract/flow.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kRequestSize = 256;

}  // namespace

TEST_CASE("request: a send without a receive returns no request", "[contract][request]") {
  run_flow(
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

TEST_CASE("request: sends are taken as long as receives wait for them", "[contract][request]") {
  constexpr size_t kRequests = NCCL_NET_MAX_REQUESTS;
  run_flow(
      [](Sender& end) {
        Buffer memory(end, kRequests * kRequestSize);
        end.peer.meet();
        std::vector<Request> requests;
        for (size_t i = 0; i < kRequests; ++i) {
          memory.fill(i * kRequestSize, kRequestSize, static_cast<uint32_t>(i));
          requests.push_back(end.send(memory.part(i * kRequestSize, kRequestSize)));
        }
        // NCCL tests the oldest request first, but is free to use another order: testing any of
        // them makes the whole comm progress.
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
  run_alone([] {
    const auto [session, net, link] = LinkedSession();
    const Buffer from(net, link.send, kRequestSize);
    const Buffer to(net, link.recv, 2 * kRequestSize);
    const std::array parts = {to.part(0, kRequestSize, 0), to.part(kRequestSize, kRequestSize, 1)};
    std::vector<Request> requests = {irecv(net, link.recv, parts)};
    for (const int tag : {0, 1}) requests.push_back(isend(net, link.send, from.all(tag)));
    for (const Request& request : requests) {
      int done = 0;
      wait_until(
          [&, &net = net] {
            BL_MUST_SUCCEED(net.test(request.raw(), &done, nullptr));
            return done == 1;
          },
          "a request");
    }
  });
}

TEST_CASE("request: invalid arguments are refused, and no request is lost", "[contract][request]") {
  const Abi abi = GENERATE(from_range(every_abi()));
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
  const Abi abi = GENERATE(from_range(every_abi()));
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
