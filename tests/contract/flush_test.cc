// SPDX-License-Identifier: Apache-2.0
//
// iflush of host memory. A call that returns no request has nothing to wait for.
#include "tests/contract/flow.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kFlushSize = 5000;

}  // namespace

TEST_CASE("flush: what was received may be flushed, alone or as a group", "[contract][flush]") {
  const Way way = GENERATE(from_range(ways()));
  const size_t parts_in_group = GENERATE(size_t{1}, size_t{3}, size_t{8});
  CAPTURE(way, parts_in_group);
  constexpr int kRounds = 20;
  run_flow(
      way,
      [&](Sender& end) {
        Buffer memory(end, kFlushSize);
        memory.fill(0, kFlushSize, 1);
        for (int round = 0; round < kRounds; ++round) {
          for (size_t i = 0; i < parts_in_group; ++i) {
            const size_t size = i == 1 ? 0 : kFlushSize;
            end.send(memory.part(0, size, static_cast<int>(i))).finish();
          }
        }
      },
      [&](Receiver& end) {
        Buffer memory(end, parts_in_group * kFlushSize);
        for (int round = 0; round < kRounds; ++round) {
          std::vector<Part> parts;
          for (size_t i = 0; i < parts_in_group; ++i) {
            parts.push_back(memory.part(i * kFlushSize, kFlushSize, static_cast<int>(i)));
          }
          Request request = end.receive(parts);
          request.finish();
          std::vector<int> sizes;
          for (const size_t size : request.sizes()) sizes.push_back(static_cast<int>(size));
          finish_flush(end.flush(parts, sizes));
        }
        for (size_t i = 0; i < parts_in_group; ++i) {
          if (i != 1) memory.expect(i * kFlushSize, kFlushSize, 1);
        }
        memory.must_hold();
      });
}

TEST_CASE("flush: as many as there can be receives are taken at once", "[contract][flush]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  run_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kFlushSize);
        memory.fill(0, kFlushSize, 1);
        end.send(memory.all()).finish();
      },
      [](Receiver& end) {
        Buffer memory(end, kFlushSize);
        const Part part = memory.all();
        end.receive(part).finish();
        for (int round = 0; round < 10; ++round) {
          std::vector<Request> requests;
          requests.reserve(NCCL_NET_MAX_REQUESTS);
          for (int i = 0; i < NCCL_NET_MAX_REQUESTS; ++i) {
            requests.push_back(end.flush(part, kFlushSize));
          }
          for (const Request& request : requests) finish_flush(request);
        }
        memory.expect(0, kFlushSize, 1);
        memory.must_hold();
      });
}

TEST_CASE("flush: receives go on while one is under way", "[contract][flush]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr size_t kRounds = 100;
  run_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kFlushSize);
        memory.fill(0, kFlushSize, 1);
        for (size_t round = 0; round < kRounds; ++round) {
          end.send(memory.all()).finish();
        }
      },
      [](Receiver& end) {
        Buffer memory(end, 2 * kFlushSize);
        Request flushing;
        for (size_t round = 0; round < kRounds; ++round) {
          const Part part = memory.part(round % 2 * kFlushSize, kFlushSize);
          Request request = end.receive(part);
          request.finish();
          finish_flush(flushing);
          flushing = end.flush(part, kFlushSize);
        }
        finish_flush(flushing);
        memory.expect(0, kFlushSize, 1);
        memory.expect(kFlushSize, kFlushSize, 1);
        memory.must_hold();
      });
}
