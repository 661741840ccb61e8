// SPDX-License-Identifier: Apache-2.0
//
// iflush, where no request means that there is nothing to wait for.
#include "tests/contract/flow.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kSize = 5000;

}  // namespace

TEST_CASE("flush: what was received may be flushed, alone or as a group", "[contract][flush]") {
  const Way way = GENERATE(from_range(ways()));
  const size_t parts_in_group = GENERATE(size_t{1}, size_t{3}, size_t{8});
  CAPTURE(way, parts_in_group);
  constexpr int kRounds = 20;
  run_flow(
      way,
      [&](Sender& end) {
        Memory memory(kSize);
        memory.fill(0, kSize, 1);
        const Mr mr = end.reg(memory);
        for (int round = 0; round < kRounds; ++round) {
          for (size_t i = 0; i < parts_in_group; ++i) {
            const size_t size = i == 1 ? 0 : kSize;
            end.send({memory.at(), size, static_cast<int>(i), mr.raw()}).finish();
          }
        }
      },
      [&](Receiver& end) {
        Memory memory(parts_in_group * kSize);
        const Mr mr = end.reg(memory);
        for (int round = 0; round < kRounds; ++round) {
          std::vector<Part> parts;
          for (size_t i = 0; i < parts_in_group; ++i) {
            parts.push_back({memory.at(i * kSize), kSize, static_cast<int>(i), mr.raw()});
          }
          Request request = end.receive(parts);
          request.finish();
          std::vector<int> sizes;
          for (const size_t size : request.sizes()) sizes.push_back(static_cast<int>(size));
          finish_flush(end.flush(parts, sizes));
        }
        for (size_t i = 0; i < parts_in_group; ++i) {
          if (i != 1) memory.expect(i * kSize, kSize, 1);
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
        Memory memory(kSize);
        memory.fill(0, kSize, 1);
        const Mr mr = end.reg(memory);
        end.send({memory.at(), kSize, 0, mr.raw()}).finish();
      },
      [](Receiver& end) {
        Memory memory(kSize);
        const Mr mr = end.reg(memory);
        const Part part{memory.at(), kSize, 0, mr.raw()};
        end.receive(part).finish();
        for (int round = 0; round < 10; ++round) {
          std::vector<Request> requests;
          requests.reserve(NCCL_NET_MAX_REQUESTS);
          for (int i = 0; i < NCCL_NET_MAX_REQUESTS; ++i) {
            requests.push_back(end.flush(std::span(&part, 1), {static_cast<int>(kSize)}));
          }
          for (const Request& request : requests) finish_flush(request);
        }
        memory.expect(0, kSize, 1);
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
        Memory memory(kSize);
        memory.fill(0, kSize, 1);
        const Mr mr = end.reg(memory);
        for (size_t round = 0; round < kRounds; ++round) {
          end.send({memory.at(), kSize, 0, mr.raw()}).finish();
        }
      },
      [](Receiver& end) {
        Memory memory(2 * kSize);
        const Mr mr = end.reg(memory);
        Request flushing;
        for (size_t round = 0; round < kRounds; ++round) {
          const Part part{memory.at(round % 2 * kSize), kSize, 0, mr.raw()};
          Request request = end.receive(part);
          request.finish();
          finish_flush(flushing);
          flushing = end.flush(std::span(&part, 1), {static_cast<int>(kSize)});
        }
        finish_flush(flushing);
        memory.expect(0, kSize, 1);
        memory.expect(kSize, kSize, 1);
        memory.must_hold();
      });
}
