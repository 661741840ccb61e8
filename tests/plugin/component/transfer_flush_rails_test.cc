// SPDX-License-Identifier: Apache-2.0
//
// Flushes of a comm with several rails: only the rails that have carried the data READ it back.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "tests/plugin/component/flush_rig.h"
#include "tests/plugin/component/poll_hook.h"
#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline::test {
namespace {

using Reads = std::vector<int>;  // by rail

void prepare(FlushRig& rig, std::uint8_t rails, const gdr::FlushNeed& need = {.any = true}) {
  const auto prepared = rig.comm().prepare_flush(need, rails);
  BL_MUST(prepared);
  BL_MUST(*prepared == rails);
}

void flush_and_finish(FlushRig& rig, std::vector<FlushTarget> targets) {
  Request* const request = rig.flush(targets);
  BL_MUST(request != nullptr);
  rig.finish(request);
}

constexpr std::size_t kTargets = 8;
constexpr int kFlushes = 32;

std::vector<FlushedMemory> memories_of_two_rails(FlushRig& rig) {
  std::vector<FlushedMemory> memories;
  for (std::size_t i = 0; i < kTargets; ++i) memories.push_back(rig.memory(0b11));
  prepare(rig, 0b11);
  return memories;
}

// Flushes of all these memories by all rails, which need more READs than the queues take.
std::vector<Request*> begin_many_flushes(FlushRig& rig, std::vector<FlushedMemory>& memories) {
  std::vector<FlushTarget> targets;
  targets.reserve(memories.size());
  for (FlushedMemory& memory : memories) targets.push_back(memory.target());
  std::vector<Request*> flushes;
  flushes.reserve(kFlushes);
  for (int i = 0; i < kFlushes; ++i) flushes.push_back(rig.flush(targets));
  return flushes;
}

}  // namespace

TEST_CASE("flush by rail: only the rail that carried the data reads it", "[component][transfer]") {
  FlushRig rig;
  FlushedMemory memory = rig.memory(0b111);
  prepare(rig, 0b111);
  for (const std::size_t rail : {1U, 2U, 0U, 0U, 2U}) {
    CAPTURE(rail);
    rig.carry(rail, memory);
    flush_and_finish(rig, {memory.target()});
    Reads expected(3);
    expected[rail] = 1;
    CHECK(rig.take_reads() == expected);
  }
}

TEST_CASE("flush by rail: the newest receive into the buffer counts", "[component][transfer]") {
  FlushRig rig;
  FlushedMemory memory = rig.memory(0b111);
  prepare(rig, 0b111);
  for (int round = 0; round < 300; ++round) {  // more often than the ring has lines
    rig.carry(0, memory, 0);
    if (round % 60 != 0) continue;
    rig.carry(2, memory, 64);
    flush_and_finish(rig, {memory.target(0)});
    CHECK(rig.take_reads() == Reads{1, 0, 0});
    rig.carry(1, memory, 0);
    flush_and_finish(rig, {memory.target(0)});
    CHECK(rig.take_reads() == Reads{0, 1, 0});
    flush_and_finish(rig, {memory.target(0), memory.target(64)});
    CHECK(rig.take_reads() == Reads{0, 1, 1});
  }
}

TEST_CASE("flush by rail: all rails of the memory read it if the carrier is not known",
          "[component][transfer]") {
  FlushRig rig;
  FlushedMemory memory = rig.memory(0b101);
  prepare(rig, 0b101);
  flush_and_finish(rig, {memory.target(0)});  // nothing was received there
  CHECK(rig.take_reads() == Reads{1, 0, 1});
  Request* const receive = rig.receive(memory);
  flush_and_finish(rig, {memory.target(0)});  // it has not arrived
  CHECK(rig.take_reads() == Reads{1, 0, 1});
  rig.arrive(2, 0);
  rig.finish(receive);
  flush_and_finish(rig, {memory.target(0)});
  CHECK(rig.take_reads() == Reads{0, 0, 1});
}

TEST_CASE("flush by rail: READs that find no room in the queue wait", "[component][transfer]") {
  const std::size_t paths_on_a_rail = GENERATE(1U, 2U);
  CAPTURE(paths_on_a_rail);
  FlushRig rig({.rails = 2, .paths_on_a_rail = paths_on_a_rail});
  std::vector<FlushedMemory> memories = memories_of_two_rails(rig);
  const std::vector<Request*> flushes = begin_many_flushes(rig, memories);
  const Reads first = rig.take_reads();
  CHECK(first == Reads{static_cast<int>(Flusher::kDepth), static_cast<int>(Flusher::kDepth)});
  for (Request* const request : flushes) rig.finish(request);
  const Reads rest = rig.take_reads();
  CHECK(first[0] + rest[0] == kFlushes * static_cast<int>(kTargets));
  CHECK(first[1] + rest[1] == kFlushes * static_cast<int>(kTargets));
}

// One path of the rail still has the former device, which is gone; the rail has another already.
TEST_CASE("flush by rail: a READ that fails is an error, whatever another path's device was",
          "[component][transfer]") {
  FlushRig rig({.rails = 2, .paths_on_a_rail = 2});
  FlushedMemory memory = rig.memory(0b1);
  prepare(rig, 0b1);
  const auto paths = rig.comm().paths();
  const auto is_other = [&](const Path& path) { return path.rail != paths[0].rail; };
  const Device& former = *std::ranges::find_if(paths, is_other)->resources->device;
  former.context->set_gone();
  const auto beside = std::find_if(paths.begin() + 1, paths.end(),
                                   [&](const Path& path) { return path.rail == paths[0].rail; });
  const Device* const own = std::exchange(beside->resources->device, &former);
  rig.carry(0, memory);
  memory.handle().rkeys[0] ^= 0x55;
  Request* const request = rig.flush(std::array{memory.target()});
  BL_MUST(request != nullptr);
  wait_until([&] { return !test_once(*request, nullptr); }, "an error");
  beside->resources->device = own;
}

// The memory has a new key when the rail comes back, by which a flush reads that was planned
// before.
TEST_CASE("flush by rail: a flush that waits reads by the key that the rail has at last",
          "[component][transfer]") {
  FlushRig rig({.rails = 1});
  FlushedMemory memory = rig.memory(0b1);
  const Device& device = rig.comm().paths()[0].own_device();
  const CqPtr cq = make_cq(device.context->raw(), 4);
  const auto domain = device.context->pd();
  BL_MUST(domain);
  const auto loopback =
      Loopback::make(device, {.pd = *domain, .cq = cq.get(), .depth = Flusher::kDepth});
  BL_MUST(loopback);
  const auto address = reinterpret_cast<std::uint64_t>(memory.at());
  const std::uint32_t key = memory.handle().rkeys[0];
  Flusher flusher(1, memory.at(8));
  flusher.add_rail(0, &*loopback, memory.handle().lkeys[0]);
  std::array<std::uint32_t, wire::kMaxRails> former_keys{};
  former_keys[0] = ~key;
  const Flusher::Target target = {.address = address, .rkeys = &former_keys, .rails = 0b1};
  flusher.plan(0, {&target, 1});
  flusher.delay(0);
  flusher.leave_rail(0, [](std::uint16_t) {});
  flusher.return_rail(0, [&](std::uint64_t of) {
    CHECK(of == address);
    return std::optional(key);
  });
  CHECK(flusher.start(0) == 1);
  CHECK(poll_one(cq.get()).status == IBV_WC_SUCCESS);
}

// A device's writes to GPU memory may arrive later than the completions that it writes to host
// memory.
TEST_CASE("flush by rail: a path is fenced when its device has read the memory back",
          "[component][transfer]") {
  FlushRig rig;
  FlushedMemory one = rig.memory(0b111);
  FlushedMemory other = rig.memory(0b111);
  prepare(rig, 0b111);
  for (FlushedMemory* memory : {&one, &other, &one}) rig.receive(*memory);
  bool may_complete = false;
  std::vector<ibv_wc> held;
  const PollHook hook(rig.comm(), [&](ibv_cq* cq, int room, ibv_wc* into) {
    int found = 0;
    if (may_complete && !held.empty()) {
      into[found++] = held.back();
      held.pop_back();
      return found;
    }
    found = PollHook::real(cq, room, into);
    const auto is_read = [](const ibv_wc& wc) { return work_id::is_read(wc.wr_id); };
    std::copy_if(into, into + found, std::back_inserter(held), is_read);
    return static_cast<int>(std::remove_if(into, into + found, is_read) - into);
  });
  BL_MUST(rig.comm().fence(rig.comm().paths()[0]));
  wait_until(
      [&] {
        CHECK(rig.comm().poll_fence(rig.comm().paths()[0]) == Comm::FenceState::kInError);
        return held.size() == 2;
      },
      "READs of both memories");
  CHECK(rig.comm().poll_fence(rig.comm().paths()[0]) == Comm::FenceState::kInError);
  may_complete = true;
  wait_until(
      [&] { return rig.comm().poll_fence(rig.comm().paths()[0]) == Comm::FenceState::kDrained; },
      "the fence");
  CHECK(rig.take_reads() == Reads{2, 0, 0});
}

// Data that has arrived may wait for a flush that NCCL asks for later.
TEST_CASE("flush by rail: a fence reads back the buffers that its rail may write to",
          "[component][transfer]") {
  FlushRig rig;
  prepare(rig, 0b111);
  FlushedMemory of_two = rig.memory(0b011);
  FlushedMemory of_one = rig.memory(0b001);
  const std::size_t path = GENERATE(0U, 1U, 2U);
  rig.carry(0, of_two);
  rig.comm().gate().enter();  // as a call does
  Path& fenced = rig.comm().paths()[path];
  BL_MUST(rig.comm().fence(fenced));
  wait_until([&] { return rig.comm().poll_fence(fenced) == Comm::FenceState::kDrained; },
             "the fence");
  Reads expected(3);
  expected[path] = path == 0 ? 2 : path == 1 ? 1 : 0;
  CHECK(rig.take_reads() == expected);
}

TEST_CASE("flush by rail: a rail that cannot be flushed is left out, and the log says so once",
          "[component][transfer]") {
  FlushRig rig({.iwarp_rails = 0b010});
  const LogCapture log;
  for (int i = 0; i < 2; ++i) {
    const auto prepared = rig.comm().prepare_flush({.any = true}, 0b111);
    REQUIRE(prepared);
    CHECK(*prepared == 0b101);
  }
  CHECK(log.count(LogLevel::kWarn) == 1);
  CHECK(log.count("device softnic1") == 1);
  CHECK(log.count("data received into GPU memory cannot be flushed") == 1);
  CHECK(log.count("The other rails of the connection carry the data of such memory") == 1);
  FlushedMemory memory = rig.memory(0b111);
  memory.handle().keep_rails(0b101);
  CHECK(memory.handle().rkeys[1] == 0);
  flush_and_finish(rig, {memory.target()});
  CHECK(rig.take_reads() == Reads{1, 0, 1});
}

TEST_CASE("flush by rail: if no rail can be flushed, that is an error", "[component][transfer]") {
  FlushRig rig({.iwarp_rails = 0b111});
  const LogCapture log;
  CHECK_FALSE(rig.comm().prepare_flush({.any = true}, 0b111));
  CHECK(log.count(LogLevel::kWarn) == 3);
}

}  // namespace beeline::test
