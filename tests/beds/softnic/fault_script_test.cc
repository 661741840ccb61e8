// SPDX-License-Identifier: Apache-2.0
//
// Scripts of faults: the meaning of their lines, error messages, and the times of execution. The
// test provides the clock.
#include "softnic/faults/script.h"

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

using softnic::TimedCommand;

constexpr std::uint64_t kMs = 1'000'000;

std::vector<TimedCommand> must_read(const TestFabric& fabric, const std::string& text) {
  auto script = softnic::read_script(fabric.fabric(), text, "f");
  if (!script) FAIL(script.error().text);
  return *std::move(script);
}

std::string complaint(const TestFabric& fabric, const std::string& text) {
  const auto script = softnic::read_script(fabric.fabric(), text, "f");
  return script ? "(accepted)" : script.error().text;
}

// "MILLISECONDS PORT COMMAND" for each command.
std::vector<std::string> lines_of(const TestFabric& fabric,
                                  const std::vector<TimedCommand>& script) {
  std::vector<std::string> lines;
  lines.reserve(script.size());
  for (const TimedCommand& timed : script)
    lines.push_back(std::to_string(timed.at_ns / kMs) + " " +
                    softnic::port_name(fabric.fabric(), timed.command.where) + " " +
                    softnic::command_text(timed.command.command));
  return lines;
}

std::uint32_t faults(const TestFabric& fabric, std::uint32_t device) {
  return fabric.fabric().header().devices[device].ports[0].faults.load();
}

}  // namespace

TEST_CASE("fault_script: times are relative or absolute, comments and blanks are ignored",
          "[softnic][fault]") {
  const TestFabric fabric;
  const auto script = must_read(fabric,
                                "# a rail goes\n"
                                "\n"
                                "h0/softnic0 loss=1%\n"
                                "+100ms  h0/softnic0 down   # the cable\n"
                                "  +20ms\th0/softnic0 up loss=0\n"
                                "h1/softnic1:1 pause=5ms\n"
                                "@1.5s h0/softnic1 remove\n"
                                "+500ms h0/softnic1 return");
  CHECK(lines_of(fabric, script) == std::vector<std::string>{
                                        "0 h0/softnic0:1 loss=1%",
                                        "100 h0/softnic0:1 down",
                                        "120 h0/softnic0:1 up",
                                        "120 h0/softnic0:1 loss=0",
                                        "120 h1/softnic1:1 pause=5ms",
                                        "1500 h0/softnic1:1 remove",
                                        "2000 h0/softnic1:1 return",
                                    });
  CHECK(must_read(fabric, "# nothing\n").empty());
}

TEST_CASE("fault_script: every bad line is reported with its number", "[softnic][fault]") {
  const TestFabric fabric;
  CHECK(complaint(fabric,
                  "+10 h0/softnic0 down\n"
                  "@1s h0/softnic9 up\n"
                  "# no mistake\n"
                  "@500ms h0/softnic0 up\n"
                  "h0/softnic0 dwon\n"
                  "+1ms h0/softnic0:1 remove\n"
                  "+1ms h0/softnic0\n"
                  "+1ms h0/softnic0 up\n"
                  "softnic0 up") ==
        "f:1: \"10\" is not a time: write for example 50us (ns, us, ms, s)\n"
        "f:2: no device \"softnic9\" on host h0; the devices are softnic0 and softnic1\n"
        "f:4: @500ms is before the line above, which is at 1s\n"
        "f:5: unknown command \"dwon\"; did you mean down?\n"
        "f:6: \"remove\" is for the whole device: leave out :1 after h0/softnic0\n"
        "f:7: expected [TIME] [HOST/]DEVICE[:PORT] COMMAND...\n"
        "f:9: softnic0 is on h0 and h1: name the host, for example h0/softnic0");
}

TEST_CASE("fault_script: each command is executed at its time and not before", "[softnic][fault]") {
  const TestFabric fabric;
  const auto script = must_read(fabric,
                                "@10ms h0/softnic0 down\n"
                                "@20ms h0/softnic0 up\n"
                                "@20ms h0/softnic1 loss=1%\n"
                                "@30ms h0/softnic0 blackhole\n");
  std::vector<std::pair<std::uint64_t, std::uint32_t>> seen;  // the state of softnic0 just before
  const std::size_t given = softnic::play(fabric.fabric(), script, [&](std::uint64_t at_ns) {
    seen.emplace_back(at_ns / kMs, faults(fabric, 0));
    return true;
  });
  CHECK(given == 4);
  CHECK(seen == std::vector<std::pair<std::uint64_t, std::uint32_t>>{
                    {10, 0}, {20, softnic::kFaultDown}, {20, 0}, {30, 0}});
  CHECK(faults(fabric, 0) == softnic::kFaultBlackHole);
  CHECK(faults(fabric, 1) == softnic::kFaultLossy);
}

TEST_CASE("fault_script: a stopped script executes nothing more", "[softnic][fault]") {
  const TestFabric fabric;
  const auto script = must_read(fabric, "h0/softnic0 down\n+1ms h0/softnic1 down\n");
  CHECK(softnic::play(fabric.fabric(), script, [](std::uint64_t at_ns) { return at_ns == 0; }) ==
        1);
  CHECK(faults(fabric, 0) == softnic::kFaultDown);
  CHECK(faults(fabric, 1) == 0);
}
