// SPDX-License-Identifier: Apache-2.0
//
// One of the processes of a kill run. Usage: kill_worker ROLE PART, with ROLE 0 or 1 and PART
//   victim    runs all steps with the survivor, then exits; it is usually killed before
//   survivor  runs all steps with the victim as long as that lives, then transfers with the
//   newcomer newcomer  transfers with the survivor orphan    sends its process id, waits for a cue,
//   and transfers with another orphan
// File descriptor 3 connects victim and survivor, or an orphan with the test. File descriptor 4
// connects survivor and newcomer, or two orphans. The exit status is 0 if all was right; otherwise
// stderr has the reason.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "tests/beds/fault/scenario.h"
#include "tests/beds/fault/step.h"

namespace beeline::test {
namespace {

constexpr int kPairFd = 3;
constexpr int kNewcomerFd = 4;
constexpr unsigned kStuckSeconds = 45;  // more than kPatience, whose errors say more

void be_victim(int role) {
  Link pair(kPairFd);
  DeviceEnds ends;
  play_everything(ends, pair, role);
  step("leaving");
}

void be_survivor(int role) {
  Link pair(kPairFd);
  Link newcomer(kNewcomerFd);
  DeviceEnds ends;
  try {
    play_everything(ends, pair, role);
  } catch (const PeerGone& gone) {
    std::fprintf(stderr, "broken off: %s\n", gone.what());
  }
  step("after the peer");
  pair.wait_for_cut();
  for (DeviceEnd* end : ends.all()) end->settle();
  step("with the newcomer");
  play_transfers(ends, newcomer, role);
  step("leaving");
}

void be_newcomer(int role) {
  Link newcomer(kNewcomerFd);
  DeviceEnds ends;
  play_transfers(ends, newcomer, role);
}

void be_orphan(int role) {
  Link cue(kPairFd);
  {
    DeviceEnds ends;
    cue.send(::getpid());
    (void)cue.receive<char>();
    Link other(kNewcomerFd);
    play_transfers(ends, other, role);
  }
  cue.send('d');
}

bool run_part(int role, std::string_view part) {
  if (part == "victim") {
    be_victim(role);
  } else if (part == "survivor") {
    be_survivor(role);
  } else if (part == "newcomer") {
    be_newcomer(role);
  } else if (part == "orphan") {
    be_orphan(role);
  } else {
    std::fprintf(stderr, "kill_worker: no such part\n");
    return false;
  }
  return handles_left.load() == 0;
}

}  // namespace
}  // namespace beeline::test

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  beeline::test::abort_if_stuck(beeline::test::kStuckSeconds);
  try {
    return beeline::test::run_part(std::atoi(argv[1]), argv[2]) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
