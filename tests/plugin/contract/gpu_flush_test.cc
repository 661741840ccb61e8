// SPDX-License-Identifier: Apache-2.0
//
// iflush of GPU memory, on a fabric that hides what NICs have written until a READ or a flush by
// the driver. The first test proves that it does, without which the others could not fail.
#include "tests/plugin/contract/gpu.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kGpuFlushSize = 5000;
constexpr size_t kSmall = 600;

// Before v9, the plugin cannot tell NCCL that it has to flush.
bool can_ask_for_flushes(Abi abi) { return abi >= Abi::kV9; }

// A GPU for which writes of NICs are not ordered, and which NCCL flushes.
const char* unordered_for(Abi abi) {
  return can_ask_for_flushes(abi) ? "ordering=none,compute=9.0" : "ordering=none,compute=8.0";
}

Kind any_gpu_kind() { return GENERATE(Kind::kDmabuf, Kind::kPeermem); }

void must_flush_nothing(const Receiver& end, const Part& part, size_t size) {
  BL_MUST(!end.flush(part, size));
}

// Sends `messages` messages, with the message's number as the seed.
SenderBody sends(uint32_t messages, size_t size = kGpuFlushSize) {
  return [=](Sender& end) {
    Buffer from(end, size);
    for (uint32_t seed = 1; seed <= messages; ++seed) {
      from.fill(0, size, seed);
      end.send(from.part(0, size)).finish();
    }
  };
}

// Receives `rounds` messages. Each must be visible after its flush, and at least one must have been
// hidden before.
void must_need_flushes(const Receiver& end, Kind kind, uint32_t rounds) {
  AnyBuffer to(end, kind, kGpuFlushSize);
  uint32_t hidden = 0;
  for (uint32_t round = 1; round <= rounds; ++round) {
    const Part part = to.part(0, kGpuFlushSize);
    end.receive(part).finish();
    to.expect(0, kGpuFlushSize, round);
    if (!to.holds(0, kGpuFlushSize)) ++hidden;
    finish_flush(end.flush(part, kGpuFlushSize));
    to.must_hold();
  }
  BL_MUST(hidden > 0);
}

// One buffer for each part of a group, of all kinds of memory in turn.
std::vector<AnyBuffer> buffers_of_all_kinds(const End& end, size_t count) {
  std::vector<AnyBuffer> buffers;
  buffers.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    buffers.emplace_back(end, kKinds[i % kKinds.size()], kGpuFlushSize);
  }
  return buffers;
}

// A receive into each buffer, with the buffer's number as its tag.
std::vector<Part> parts_of(const std::vector<AnyBuffer>& buffers) {
  std::vector<Part> parts;
  for (size_t i = 0; i < buffers.size(); ++i) {
    parts.push_back(buffers[i].part(0, kGpuFlushSize, static_cast<int>(i)));
  }
  return parts;
}

// Flushes groups of receives that have kSmall bytes in each part, all at once.
void flush_groups(const Receiver& end, const std::vector<std::vector<Part>>& groups) {
  std::vector<Request> flushes;
  flushes.reserve(groups.size());
  for (const std::vector<Part>& parts : groups) {
    flushes.push_back(end.flush(parts, std::vector<int>(parts.size(), kSmall)));
  }
  for (const Request& flush : flushes) finish_flush(flush);
}

}  // namespace

TEST_CASE("gpu flush: received data is visible after a flush, and not before",
          "[contract][gpu][gpu_flush][softnic]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(some_abis()));
  const Kind kind = any_gpu_kind();
  CAPTURE(abi, kind);
  constexpr uint32_t kRounds = 10;
  const Hiding hiding;
  const Variable gpu("SOFTGPU", unordered_for(abi));
  run_gpu_flow({abi, usual_mode()}, sends(kRounds), [&](Receiver& end) {
    const Properties properties = end.session.properties(last_device(end.session));
    BL_MUST(properties.force_flush.value_or(1) == 1);
    must_need_flushes(end, kind, kRounds);
  });
}

TEST_CASE("gpu flush: after one flush, all parts of a group are visible",
          "[contract][gpu][gpu_flush][softnic]") {
  if (!kProcessesWork) return;
  constexpr size_t kParts = 7;
  constexpr uint32_t kRounds = 5;
  const auto size_of = [](uint32_t round, size_t i) {
    return (i + round) % 3 == 0 ? size_t{0} : kGpuFlushSize - i;
  };
  const Hiding hiding;
  const Variable gpu("SOFTGPU", unordered_for(kNewest));
  run_gpu_flow(
      [&](Sender& end) {
        Buffer from(end, kGpuFlushSize);
        for (uint32_t round = 0; round < kRounds; ++round) {
          for (size_t i = 0; i < kParts; ++i) {
            from.fill(0, kGpuFlushSize, round * 100 + static_cast<uint32_t>(i));
            end.send(from.part(0, size_of(round, i), static_cast<int>(i))).finish();
          }
        }
      },
      [&](Receiver& end) {
        std::vector<AnyBuffer> buffers = buffers_of_all_kinds(end, kParts);
        const std::vector<Part> parts = parts_of(buffers);
        for (uint32_t round = 0; round < kRounds; ++round) {
          for (size_t i = 0; i < kParts; ++i) {
            buffers[i].expect(0, size_of(round, i), round * 100 + static_cast<uint32_t>(i));
          }
          Request request = end.receive(parts);
          request.finish();
          finish_flush(end.flush(parts, {request.sizes().begin(), request.sizes().end()}));
          for (const AnyBuffer& buffer : buffers) buffer.must_hold();
        }
      });
}

TEST_CASE("gpu flush: where NCCL cannot be told to flush, data is visible when test reports done",
          "[contract][gpu][gpu_flush][softnic]") {
  if (!kProcessesWork) return;
  constexpr size_t kParts = 4;
  constexpr uint32_t kRounds = 10;
  const Hiding hiding;
  const Variable gpu("SOFTGPU", "ordering=none,compute=9.0");
  run_gpu_flow(
      {Abi::kV8, usual_mode()},
      [&](Sender& end) {
        Buffer from(end, kGpuFlushSize);
        for (uint32_t round = 1; round <= kRounds; ++round) {
          from.fill(0, kGpuFlushSize, round);
          for (size_t i = 0; i < kParts; ++i) {
            end.send(from.part(0, kGpuFlushSize, static_cast<int>(i))).finish();
          }
        }
      },
      [&](Receiver& end) {
        std::vector<AnyBuffer> buffers = buffers_of_all_kinds(end, kParts);
        const std::vector<Part> parts = parts_of(buffers);
        for (uint32_t round = 1; round <= kRounds; ++round) {
          for (AnyBuffer& buffer : buffers) buffer.expect(0, kGpuFlushSize, round);
          end.receive(parts).finish();
          for (const AnyBuffer& buffer : buffers) buffer.must_hold();
        }
      });
}

// The empty buffer lies at the end of the registration, so a READ of one byte would be out of
// bounds.
TEST_CASE("gpu flush: where test flushes, an empty buffer is not read",
          "[contract][gpu][gpu_flush][softnic]") {
  if (!kProcessesWork) return;
  const Hiding hiding;
  const Variable gpu("SOFTGPU", "ordering=none,compute=9.0,flush=none");  // a READ, or nothing
  run_gpu_flow(
      {Abi::kV8, usual_mode()},
      [&](Sender& end) {
        Buffer from(end, kGpuFlushSize);
        from.fill(0, kGpuFlushSize, 1);
        end.send(from.part(0, 0)).finish();
        end.send(from.part(0, kGpuFlushSize)).finish();
      },
      [&](Receiver& end) {
        constexpr size_t kPages = size_t{2} * 4096;  // a dma-buf consists of whole pages
        AnyBuffer to(end, Kind::kDmabuf, kPages);
        end.receive(to.part(kPages, 0)).finish();
        to.expect(0, kGpuFlushSize, 1);
        end.receive(to.part(0, kGpuFlushSize)).finish();
        to.must_hold();
      });
}

TEST_CASE("gpu flush: neither host memory nor an empty message has anything to wait for",
          "[contract][gpu][gpu_flush][softnic]") {
  if (!kProcessesWork) return;
  const Variable gpu("SOFTGPU", "ordering=none");
  run_gpu_flow({kNewest, PeerMode::kThreads}, sends(3), [&](Receiver& end) {
    std::vector<AnyBuffer> buffers = one_of_each(end, kGpuFlushSize);
    for (AnyBuffer& buffer : buffers) {
      end.receive(buffer.part(0, kGpuFlushSize)).finish();
      const bool is_host = buffer.kind() == Kind::kHost;
      must_flush_nothing(end, buffer.part(0, kGpuFlushSize), is_host ? kGpuFlushSize : 0);
    }
  });
}

TEST_CASE("gpu flush: receives in flight leave room for it",
          "[contract][gpu][gpu_flush][softnic]") {
  if (!kProcessesWork) return;
  const size_t parts_in_group = GENERATE(size_t{1}, size_t{8});
  CAPTURE(parts_in_group);
  constexpr uint32_t kRounds = 4;
  const uint32_t in_round = NCCL_NET_MAX_REQUESTS * static_cast<uint32_t>(parts_in_group);
  const Hiding hiding;
  const Variable gpu("SOFTGPU", unordered_for(kNewest));
  run_gpu_flow(sends(kRounds * in_round, kSmall), [&](Receiver& end) {
    std::vector<AnyBuffer> halves;
    halves.emplace_back(end, Kind::kDmabuf, in_round * kSmall);
    halves.emplace_back(end, Kind::kPeermem, in_round * kSmall);
    uint32_t seed = 0;
    const auto groups_of = [&](AnyBuffer& buffer) {
      std::vector<std::vector<Part>> groups(NCCL_NET_MAX_REQUESTS);
      for (uint32_t i = 0; i < in_round; ++i) {
        groups[i / parts_in_group].push_back(buffer.part(i * kSmall, kSmall));
        buffer.expect(i * kSmall, kSmall, ++seed);
      }
      return groups;
    };
    const auto receive = [&](const std::vector<std::vector<Part>>& groups) {
      std::vector<Request> requests;
      requests.reserve(groups.size());
      for (const std::vector<Part>& parts : groups) requests.push_back(end.receive(parts));
      return requests;
    };
    std::vector<std::vector<Part>> groups = groups_of(halves[0]);
    std::vector<Request> receives = receive(groups);
    for (uint32_t round = 1; round <= kRounds; ++round) {
      finish_all(receives);
      std::vector<std::vector<Part>> next;
      if (round < kRounds) next = groups_of(halves[round % 2]);
      receives = receive(next);
      // In the last round, as many receives as are accepted. No message arrives for them.
      for (int i = 0; next.empty() && i < 2048 && end.try_receive(groups[0]); ++i) {
      }
      flush_groups(end, groups);
      halves[(round - 1) % 2].must_hold();
      groups = next;
    }
  });
}

// If the NIC cannot flush, the driver may. If neither can, the flush waits for the port.
TEST_CASE("gpu flush: where the port has gone down, the driver flushes, or the port that is back",
          "[contract][gpu][gpu_flush][softnic]") {
  if (!kProcessesWork) return;
  const bool driver_flushes = GENERATE(true, false);
  CAPTURE(driver_flushes);
  const std::string target = "h0/" + fabric_facts().devices.back();
  const UndoneFaults undone(target);
  const Hiding hiding;
  const std::string settings =
      std::string(unordered_for(kNewest)) + (driver_flushes ? ",flush=both" : ",flush=none");
  const Variable gpu("SOFTGPU", settings.c_str());
  run_with_gpu([&] {
    const auto [session, net, link] = LinkedSession();
    AnyBuffer from(net, link.send, Kind::kHost, kGpuFlushSize);
    AnyBuffer to(net, link.recv, Kind::kDmabuf, kGpuFlushSize);
    // The first flush creates the objects that flushes use.
    must_carry(net, link, from, to, kGpuFlushSize, 1);
    from.fill(0, kGpuFlushSize, 2);
    to.expect(0, kGpuFlushSize, 2);
    const Part part = to.part(0, kGpuFlushSize);
    carry(net, link, from.part(0, kGpuFlushSize), part);
    disturb(target, "down");
    std::array<void*, 1> data = {part.data};
    std::array<void*, 1> mhandles = {part.mhandle};
    int size = static_cast<int>(kGpuFlushSize);
    void* raw = nullptr;
    BL_MUST_OK(at_once([&, &net = net, &link = link] {
      return net.iflush(link.recv.raw(), 1, data.data(), &size, mhandles.data(), &raw);
    }));
    if (!driver_flushes) disturb(target, "up");
    if (raw != nullptr) Request(net, raw, 0).finish();
    to.must_hold();
  });
}
