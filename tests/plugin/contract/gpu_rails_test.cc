// SPDX-License-Identifier: Apache-2.0
//
// GPU memory on connections with four rails: a NIC that refuses a buffer is left out for it, and
// each NIC that has carried data is flushed. These tests need a fabric with four
// devices on each host.
#include <string>

#include "tests/plugin/contract/gpu.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kRailBytes = (size_t{4} << 20) + 7;
constexpr size_t kRailSizes[] = {1, 5000, (size_t{64} << 10) + 1, size_t{1} << 20, kRailBytes};

// The tests ask for all of them as one device.
void must_have_four_nics() { REQUIRE(fabric_facts().devices.size() == 4); }

// The line that says what each rail has carried names all devices but this one.
void must_have_used_all_but(const std::string& device) {
  const std::vector<std::string> lines =
      find_log_lines(NCCL_LOG_INFO, {"connections are closed: sent "});
  BL_MUST(lines.size() == 1);
  for (const std::string& other : fabric_facts().devices) {
    const bool is_named = lines.front().find(other + " port 1 ") != std::string::npos;
    if (is_named == (other == device)) throw MustError(other + ": " + lines.front());
  }
}

AnyBuffer refused_buffer(Net& net, const Comm& comm, Kind kind, const std::string& device) {
  const UndoneFaults undone("h0/" + device);
  disturb("h0/" + device, "refuse-gpu=on");
  return {net, comm, kind, kRailBytes};
}

}  // namespace

TEST_CASE("gpu rails: a buffer that one of four rails refuses is carried by the others",
          "[contract][gpu][gpu_rails][softnic]") {
  must_have_four_nics();
  const std::string refusing = GENERATE("softnic0", "softnic3");
  const Kind kind = refusing == "softnic0" ? Kind::kDmabuf : Kind::kPeermem;
  CAPTURE(refusing);
  const Variable rails("BEELINE_RAILS", "4");
  const Variable gpu("SOFTGPU", "ordering=all,compute=9.0");
  run_with_gpu([&] {
    auto [session, net, link] = LinkedSession();
    BL_MUST(session.devices() == 1);
    AnyBuffer from = refused_buffer(net, link.send, kind, refusing);
    AnyBuffer to = refused_buffer(net, link.recv, kind, refusing);
    uint32_t seed = 0;
    for (const size_t size : kRailSizes) {
      for (int round = 0; round < 2; ++round) must_carry(net, link, from, to, size, ++seed);
    }
    BL_MUST(find_log_lines(NCCL_LOG_WARN).size() == 1);  // for both ends
    BL_MUST(log_has(NCCL_LOG_WARN, {"of GPU memory failed with " + refusing + " port 1: ",
                                    "dma-buf: ibv_reg_dmabuf_mr", "peer memory: ibv_reg_mr",
                                    "The other rails of the connection carry the data"}));
    from.mr().drop();
    to.mr().drop();
    must_hold_no_gpu_memory();
    link.send.close();
    link.recv.close();
    must_have_used_all_but(refusing);
  });
}

TEST_CASE("gpu rails: data is visible after a flush, whichever rails have carried it",
          "[contract][gpu][gpu_rails][softnic]") {
  must_have_four_nics();
  const Abi abi = GENERATE(from_range(some_abis()));  // test flushes, or NCCL does
  CAPTURE(abi);
  constexpr uint32_t kRounds = 20;
  const auto size_of = [](uint32_t round) { return kRailSizes[round % std::size(kRailSizes)]; };
  const Variable rails("BEELINE_RAILS", "4");
  const Hiding hiding;
  const Variable gpu("SOFTGPU", "ordering=none,compute=9.0");
  run_gpu_flow(
      {abi, usual_mode()},
      [&](Sender& end) {
        Buffer from(end, kRailBytes);
        for (uint32_t round = 1; round <= kRounds; ++round) {
          from.fill(0, size_of(round), round);
          end.send(from.part(0, size_of(round))).finish();
        }
      },
      [&](Receiver& end) {
        BL_MUST(end.session.devices() == 1);
        AnyBuffer to(end, Kind::kDmabuf, kRailBytes);
        uint32_t hidden = 0;
        for (uint32_t round = 1; round <= kRounds; ++round) {
          const Part part = to.part(0, size_of(round));
          end.receive(part).finish();
          to.expect(0, size_of(round), round);
          if (abi == kNewest) {
            if (!to.holds(0, size_of(round))) ++hidden;
            finish_flush(end.flush(part, size_of(round)));
          }
          to.must_hold();
        }
        BL_MUST((hidden > 0) == (abi == kNewest));
      });
}

// The receiver has granted memory, and the plan of its flush is made, when its only NIC fails. NCCL
// has closed the descriptors of its dma-bufs long ago.
TEST_CASE("gpu rails: another NIC carries GPU memory when the only one has failed for good",
          "[contract][gpu][gpu_rails][softnic]") {
  must_have_four_nics();
  // test flushes, or NCCL does.
  const auto [abi, kind, fault] = GENERATE(table<Abi, Kind, std::string>(
      {{Abi::kV8, Kind::kPeermem, "down"}, {Abi::kV12, Kind::kDmabuf, "remove"}}));
  CAPTURE(abi, kind, fault);
  constexpr uint32_t kRounds = 8;
  constexpr uint32_t kFaultBefore = 3;
  const std::string target = "h1/softnic3";
  const UndoneFaults undone(target);
  const auto size_of = [](uint32_t round) { return kRailSizes[round % std::size(kRailSizes)]; };
  const Hiding hiding;
  const Variable gpu("SOFTGPU", "ordering=none,compute=9.0");
  run_gpu_flow(
      {abi, PeerMode::kProcesses},
      [&, kind = kind, &fault = fault](Sender& end) {
        AnyBuffer from(end, kind, kRailBytes);
        for (uint32_t round = 1; round <= kRounds; ++round) {
          if (round == kFaultBefore) {
            end.peer.meet();
            disturb(target, fault);
          }
          from.fill(0, size_of(round), round);
          end.send(from.part(0, size_of(round))).finish();
        }
        BL_MUST(
            either_warns(end.peer, {"port softnic3:1 of this host", ", which stands in, after "}));
      },
      [&, abi = abi, kind = kind](Receiver& end) {
        AnyBuffer to(end, kind, kRailBytes);
        for (uint32_t round = 1; round <= kRounds; ++round) {
          const Part part = to.part(0, size_of(round));
          Request request = end.receive(part);
          if (round == kFaultBefore) end.peer.meet();
          request.finish();
          to.expect(0, size_of(round), round);
          if (abi == Abi::kV12) finish_flush(end.flush(part, size_of(round)));
          to.must_hold();
        }
        BL_MUST(
            either_warns(end.peer, {"port softnic3:1 of this host", ", which stands in, after "}));
      });
}
