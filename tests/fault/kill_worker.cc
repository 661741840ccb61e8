// SPDX-License-Identifier: Apache-2.0
//
// One of the processes of a kill run. Usage: kill_worker ROLE PART, with ROLE 0 or 1 and PART
//   victim    plays everything with the survivor, then leaves; is meant to die on the way
//   survivor  plays everything with the victim for as long as that lives, then transfers with the
//             newcomer, as if nothing had been
//   newcomer  transfers with the survivor
//   heir      says its process number, and on its cue transfers with another heir
// File descriptor 3 leads to the other of victim and survivor, or to who gives the cue; 4 to the
// other of survivor and newcomer, or of two heirs. Exit status 0: all was as it should be; else
// stderr says what was not.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "tests/fault/scenario.h"
#include "tests/fault/step.h"

namespace beeline::test {
namespace {

constexpr int kPairFd = 3;
constexpr int kNewcomerFd = 4;
constexpr unsigned kStuckSeconds = 45;  // more than kPatience, which tells more

void be_victim(int role) {
  Link pair(kPairFd);
  World world;
  play_everything(world, pair, role);
  step("leaving");
}

void be_survivor(int role) {
  Link pair(kPairFd);
  Link newcomer(kNewcomerFd);
  World world;
  try {
    play_everything(world, pair, role);
  } catch (const PeerGone& gone) {
    std::fprintf(stderr, "broken off: %s\n", gone.what());
  }
  step("after the peer");
  pair.wait_for_cut();
  for (Station* station : world.all()) station->settle();
  step("with the newcomer");
  play_transfers(world, newcomer, role);
  step("leaving");
}

void be_newcomer(int role) {
  Link newcomer(kNewcomerFd);
  World world;
  play_transfers(world, newcomer, role);
}

void be_heir(int role) {
  Link cue(kPairFd);
  {
    World world;
    cue.send(::getpid());
    (void)cue.receive<char>();
    Link other(kNewcomerFd);
    play_transfers(world, other, role);
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
  } else if (part == "heir") {
    be_heir(role);
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
