// SPDX-License-Identifier: Apache-2.0
//
// A part of what the program `simulation` runs at length: seeds, cases that were found by it, and
// faults that several ends or hosts share.
#include <algorithm>
#include <string>

#include "tests/plugin/simulation/calm.h"
#include "tests/plugin/simulation/runs.h"
#include "tests/support/catch.h"

namespace beeline::simulation {
namespace {

template <class Change>
void check_seeds(std::uint64_t first, std::uint64_t count, const Change& change) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RunOptions options = draw_run(seed);
    options.comms = std::min<std::uint32_t>(options.comms, BL_MOST_COMMS);
    change(options);
    const RunResult result = run(options);
    INFO("simulation --seed " << seed << ": " << result.violation << "; " << result.ending);
    REQUIRE(result.violation.empty());
  }
}

void check_seeds(std::uint64_t first, std::uint64_t count) {
  check_seeds(first, count, [](RunOptions&) {});
}

}  // namespace

// Mutations of recovery name this case, so it is short.
TEST_CASE("simulation: a few random schedules of faults break no promise", "[simulation]") {
  check_seeds(1, BL_FEW_SEEDS);
}

// NCCL looks for the data, and makes no call for the receive.
TEST_CASE("simulation: faults while receives are done early break no promise", "[simulation]") {
  check_seeds(1, BL_FEW_SEEDS, [](RunOptions& run) { run.has_early_done = !run.is_gpu; });
}

// As on iWARP: a SEND behind the data announces it, and queue pairs are prepared before they are
// offered.
TEST_CASE("simulation: faults while data is announced by notices break no promise",
          "[simulation]") {
  check_seeds(1, BL_FEW_SEEDS, [](RunOptions& run) {
    run.has_immediates = false;
    run.is_by_cm = true;
  });
}

TEST_CASE("simulation: faults while GPU memory needs flushes break no promise", "[simulation]") {
  check_seeds(1, BL_FEW_SEEDS, [](RunOptions& run) { run.is_gpu = true; });
}

TEST_CASE("simulation: many random schedules of faults break no promise", "[simulation]") {
  check_seeds(101, BL_SIMULATED_SEEDS);
}

TEST_CASE("simulation: a run without faults moves every message", "[simulation]") {
  const RunResult result = run_text(calm());
  CHECK(result.violation.empty());
  CHECK(result.ended == 0);
  CHECK(result.messages > 1000);
}

TEST_CASE("simulation: the same seed gives the same run", "[simulation]") {
  for (std::uint64_t seed = 1; seed <= BL_FEW_SEEDS / 2; ++seed) {
    const std::uint64_t first = run(draw_run(seed)).hash;
    run(draw_run(seed + 1000));
    const std::uint64_t again = run(draw_run(seed)).hash;
    INFO("seed " << seed);
    CHECK(first == again);
  }
}

TEST_CASE("simulation: a schedule is the same after it was written and read", "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::string why;
    const std::string text = to_text(draw_run(seed));
    const auto read = parse_run(text, why);
    REQUIRE(read);
    CHECK(to_text(*read) == text);
    CHECK(run(*read).hash == run(draw_run(seed)).hash);
    seed += 20;
  }
}

// --- The oracles: a device that breaks its own promises must not go unnoticed ---

TEST_CASE("simulation: an oracle notices a device that acknowledges and places nothing",
          "[simulation][oracle]") {
  const RunResult result = run_text(calm("at 500 for 300 discards h1/n0 h0/n0 0\n"));
  CHECK_FALSE(result.violation.empty());
}

TEST_CASE("simulation: an oracle notices data that comes after the grant is over",
          "[simulation][oracle]") {
  std::string violations;
  for (const char* seed : {"seed=1", "seed=2", "seed=10", "seed=12"}) {
    violations += run_text(with(calm("at 500 for 2000 false-fence h1/n0 h0/n0 0\n"
                                     "at 500 for 2000 no-queues h1/n0 h0/n0 0\n"
                                     "at 500 for 2000 delay h0/n0 h1/n0 120\n"
                                     "at 600 for 0 status h0/n0 h1/n0 12\n"),
                                "seed=1 ", std::string(seed) + " "))
                      .violation +
                  "; ";
  }
  INFO(violations);
  CHECK(violations.find("which is not granted now") != std::string::npos);
  // The buffer is granted again by then, to another message.
  CHECK(violations.find("which waits for message") != std::string::npos);
}

TEST_CASE("simulation: an oracle notices completions that are lost", "[simulation][oracle]") {
  const RunResult result =
      run_text(calm("at 500 for 60000 lost-completions h1/n0 h0/n0 0\n"
                    "at 500 for 60000 lost-completions h1/n1 h0/n1 0\n"));
  CHECK_FALSE(result.violation.empty());
}

// --- Found by the simulation ---

TEST_CASE("simulation: a device that refuses receives takes one path out of use, and no more",
          "[simulation]") {
  const RunResult result =
      run_text(calm("at 300 for 400 down h1/n0 h0/n0 0\n"
                    "at 650 for 500 no-posts h1/n0 h0/n0 0\n"
                    "at 2000 for 100 no-posts h0/n1 h1/n1 0\n"));
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
}

// The other end is connected seconds before, and must not take the silence for a failure.
TEST_CASE("simulation: a device that takes seconds to make a queue pair is waited for",
          "[simulation]") {
  const std::string text = with(with(calm("at 500 for 30000 slow-control h0/n0 h1/n0 4000\n"
                                          "at 600 for 500 down h0/n0 h1/n0 0\n"),
                                     "nics=2 rails=2", "nics=1 rails=1"),
                                "faults_ms=4000", "faults_ms=30000");
  const RunResult result = run_text(text);
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns < 20 * kNsPerSec);
}

TEST_CASE("simulation: GPU memory is flushed by a port whose address has changed", "[simulation]") {
  const std::string text = calm(
      "at 300 for 0 address h1/n0 h0/n0 0\n"
      "at 400 for 50 down h1/n0 h0/n0 0\n");
  const RunResult result =
      run_text(with(with(text, "gpu=0", "gpu=1"), "nics=2 rails=2", "nics=1 rails=1"));
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
}

TEST_CASE("simulation: two paths of a rail that are made by different devices keep its keys",
          "[simulation]") {
  const RunResult result = run_text(
      "run seed=3173 hosts=2 nics=3 rails=1 queue_pairs=2 comms=1 most_bytes=262144 "
      "groups_at_once=2 pace_us=35771 poll_ms=32 gpu=0 standbys=1 give_up_ms=0 faults_ms=2064\n"
      "at 383.242 for 0.428 false-event h1/n0 h0/n0 0\n"
      "at 638.424 for 509.519 slow-control h1/n0 h0/n0 763\n"
      "at 900.169 for 0.723 no-posts h0/n0 h1/n0 0\n"
      "at 1441.313 for 520.418 down h0/n0 h1/n0 0\n"
      "at 1598.710 for 387.734 address h0/n0 h1/n0 0\n"
      "at 1624.241 for 1.307 down h0/n0 h1/n0 0\n"
      "at 1626.877 for 18.545 address h1/n0 h0/n0 0\n"
      "at 1769.389 for 676.854 down h0/n0 h1/n0 0\n"
      "at 1987.081 for 7.375 down-silently h1/n0 h0/n1 0\n");
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
}

TEST_CASE("simulation: a path of a rail joins by the device that another path has just left",
          "[simulation]") {
  // Its own former device is the same, but meanwhile the rail had the keys of another.
  const RunResult result = run_text(
      "run seed=502257 hosts=2 nics=2 rails=1 queue_pairs=2 comms=1 most_bytes=4194304"
      " groups_at_once=3 pace_us=18108 poll_ms=75 gpu=0 standbys=1 give_up_ms=0 faults_ms=8534\n"
      "at 1760.502 for 1.575 no-posts h0/n0 h1/n0 0\n"
      "at 3124.125 for 1.479 loss h1/n0 h0/n1 36\n"
      "at 3365.045 for 117.289 down h1/n0 h0/n0 0\n"
      "at 3590.581 for 1.581 status h0/n0 h1/n0 12\n"
      "at 3627.100 for 1525.143 no-posts h1/n0 h0/n0 0\n"
      "at 4568.184 for 86.091 down-silently h0/n0 h1/n0 0\n"
      "at 5257.559 for 1.864 down-silently h0/n0 h1/n0 0\n"
      "at 6550.835 for 1.004 slow-control h0/n0 h1/n0 1353\n"
      "at 6569.158 for 1168.691 down-silently h1/n0 h0/n0 0\n"
      "at 7642.349 for 702.177 down h0/n0 h1/n0 0\n");
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
}

TEST_CASE("simulation: a rail with two queue pairs is flushed by the device that has come back",
          "[simulation]") {
  // The second path learns that the former device is gone when the first has the new one already.
  const RunResult result = run_text(
      "run seed=2000908 hosts=2 nics=4 rails=3 queue_pairs=2 comms=1 most_bytes=64"
      " groups_at_once=1 pace_us=13262 poll_ms=46 gpu=1 standbys=1 give_up_ms=0 faults_ms=4225\n"
      "at 123.781 for 1.192 false-event h1/n1 h0/n0 0\n"
      "at 293.504 for 841.249 delay h0/n0 h1/n0 139\n"
      "at 1560.744 for 492.616 ctl-cut h1/n1 h0/n2 0\n"
      "at 1678.853 for 1.704 removed h1/n1 h0/n1 0\n"
      "at 2134.329 for 1.701 down h0/n2 h1/n2 0\n");
  CHECK(result.violation == "");
}

TEST_CASE("simulation: one end's device refuses the fence, and that of the other is gone",
          "[simulation]") {
  // The control channel is away for longer than the ends would wait for each other.
  const RunResult result = run_text(
      "run seed=2000050 hosts=2 nics=4 rails=2 queue_pairs=1 comms=1 most_bytes=8192 "
      "groups_at_once=5 pace_us=69168 poll_ms=78 gpu=0 standbys=1 give_up_ms=0 faults_ms=6114\n"
      "at 2915.203 for 1132.085 no-error-state h1/n1 h0/n1 0\n"
      "at 3134.928 for 2459.612 ctl-mute h0/n0 h1/n0 0\n"
      "at 3255.548 for 1.880 removed h0/n1 h1/n1 0\n");
  CHECK(result.violation == "");
}

TEST_CASE("simulation: a device that is removed again while its process is stopped comes back",
          "[simulation]") {
  // The events of both of its lives are seen at the same time.
  const RunResult result = run_text(
      "run seed=10053414 hosts=2 nics=4 rails=2 queue_pairs=1 comms=1 most_bytes=1048576"
      " groups_at_once=5 pace_us=75274 poll_ms=32 gpu=0 standbys=1 give_up_ms=0 faults_ms=933\n"
      "at 196.890 for 1.606 removed h0/n0 h1/n0 0\n"
      "at 325.683 for 1.497 down-silently h0/n2 h1/n2 0\n"
      "at 386.119 for 1.601 removed h1/n1 h0/n1 0\n"
      "at 409.077 for 1.335 removed h0/n0 h1/n0 0\n"
      "at 553.417 for 30.878 stopped h1/n3 h0/n3 0\n"
      "at 563.944 for 1.227 ctl-mute h1/n1 h0/n1 0\n"
      "at 600.212 for 89.062 stopped h1/n0 h0/n0 0\n"
      "at 673.660 for 0.693 removed h1/n1 h0/n0 0\n"
      "at 675.865 for 1.144 false-event h1/n1 h0/n1 0\n");
  CHECK(result.violation == "");
}

// The application polls so seldom that data has arrived which it has not seen when the path fails.
// With the bug that this shows, one seed in seven breaks a promise.
TEST_CASE("simulation: an end reports what it has got when the queue pair is drained",
          "[simulation]") {
  for (int seed = 1; seed <= 30; ++seed) {
    const RunResult result =
        run_text("run seed=" + std::to_string(seed) +
                 " hosts=2 nics=5 rails=3 queue_pairs=2 comms=4 most_bytes=512 groups_at_once=1 "
                 "pace_us=20000 poll_ms=78 gpu=0 standbys=1 give_up_ms=0 faults_ms=2000\n"
                 "at 1025.434 for 1.322 false-event h0/n0 h1/n0 0\n");
    INFO("seed " << seed);
    CHECK(result.violation == "");
  }
}

// --- The control channel shares the fate of paths ---

TEST_CASE("simulation: a rail fails while the control channel is away", "[simulation]") {
  const std::string rails = GENERATE("2", "4");
  const std::string text = with(calm("at 500 for 40000 ctl-cut h0/n0 h1/n0 0\n"
                                     "at 600 for 40000 down h0/n0 h1/n0 0\n"),
                                "faults_ms=4000", "faults_ms=41000");
  const RunResult result =
      run_text(with(text, "nics=2 rails=2", "nics=" + rails + " rails=" + rails));
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns < kSec);
}

TEST_CASE("simulation: connections without work go on while the control channel is away",
          "[simulation]") {
  // One process only sends, so nothing comes to it unless it asks.
  const std::string rails = GENERATE("1", "2");
  const std::string text = with(with(with(calm("at 500 for 90000 ctl-cut h0/n0 h1/n0 0\n"),
                                          "faults_ms=4000", "faults_ms=91000"),
                                     "pace_us=5000", "pace_us=45000000"),
                                "comms=2", "comms=1");
  const RunResult result =
      run_text(with(text, "nics=2 rails=2", "nics=" + rails + " rails=" + rails));
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
}

TEST_CASE("simulation: two of three hosts are cut off for three minutes", "[simulation][minutes]") {
  std::string text = with(calm(), "hosts=2", "hosts=3");
  text = with(with(text, "comms=2", "comms=6"), "faults_ms=4000", "faults_ms=190000");
  // One is back before the other.
  for (const char* const fault :
       {"at 500 for 180000 down h0/n0 h2/n0 0\n",  //
        "at 500 for 180000 down h0/n1 h2/n1 0\n", "at 500 for 188000 down h1/n0 h2/n0 0\n",
        "at 500 for 188000 down h1/n1 h2/n1 0\n", "at 500 for 180000 ctl-cut h0/n0 h2/n0 0\n",
        "at 500 for 188000 ctl-cut h0/n0 h1/n0 0\n", "at 500 for 188000 ctl-cut h1/n0 h2/n0 0\n"}) {
    text += fault;
  }
  const RunResult result = run_text(text);
  INFO(result.ending);
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
}

TEST_CASE("simulation: a host that loses power ends its comms, and no others",
          "[simulation][minutes]") {
  const bool has_third = GENERATE(false, true);
  std::string text = calm();
  if (has_third) text = with(with(text, "hosts=2", "hosts=3"), "comms=2", "comms=6");
  text = with(text, "faults_ms=4000", "faults_ms=60000");
  for (const char* const other : {"h0", "h2"}) {
    if (!has_third && other == std::string("h2")) continue;
    text += std::string("at 500 for 59000 ctl-cut h1/n0 ") + other + "/n0 0\n";
    for (const char* const nic : {"/n0", "/n1"}) {
      text += std::string("at 500 for 59000 both-ways h1") + nic + " " + other + nic + " 0\n";
    }
  }
  const RunResult result = run_text(text);
  INFO(result.violation);
  CHECK(result.ended == (has_third ? 4 : 2));
  CHECK(result.last_end_ns < 25'500 * kMs);
  CHECK(result.ending.find("no answer on the control channel") != std::string::npos);
}

TEST_CASE("simulation: the peer is mute on the control channel", "[simulation]") {
  const bool is_one_rail = GENERATE(true, false);
  std::string text = calm(
      "at 500 for 90000 ctl-mute h1/n0 h0/n0 0\n"
      "at 600 for 80000 both-ways h1/n0 h0/n0 0\n");
  if (!is_one_rail) text += "at 600 for 80000 both-ways h1/n1 h0/n1 0\n";
  const RunResult result = run_text(with(text, "faults_ms=4000", "faults_ms=91000"));
  INFO(result.ending);
  CHECK(result.violation == "");
  CHECK(result.ended == (is_one_rail ? 0 : 2));
  if (is_one_rail) return;
  CHECK(result.ending.find("although its control channel is open") != std::string::npos);
  CHECK(result.last_end_ns < 26 * kSec);
}

TEST_CASE("simulation: one device refuses the fence, the other is gone, and one end is not heard",
          "[simulation]") {
  const RunResult result = run_text(
      "run seed=20010540 hosts=2 nics=5 rails=3 queue_pairs=1 comms=1 most_bytes=1"
      " groups_at_once=1 pace_us=67178 poll_ms=31 gpu=0 standbys=0 give_up_ms=0 faults_ms=5576\n"
      "at 994.980 for 2616.604 ctl-mute h1/n2 h0/n2 0\n"
      "at 1201.618 for 882.601 no-error-state h1/n2 h0/n2 0\n"
      "at 1976.796 for 1.550 removed h0/n2 h1/n2 0\n");
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
}

TEST_CASE("simulation: one rail completes with a status of a program's fault", "[simulation]") {
  const int status = GENERATE(4, 9, 10, 11);
  const RunResult result =
      run_text(calm(("at 500 for 0 status h0/n0 h1/n0 " + std::to_string(status) + "\n").c_str()));
  INFO(result.ending);
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns < 100 * kMs);  // nobody waits for an explanation
}

// The receiver's queue pair breaks each time, so that the receiver fences the path.
TEST_CASE("simulation: a message that fails wherever it is sent ends the comm", "[simulation]") {
  const bool is_only = GENERATE(false, true);
  std::string text = calm(
      "at 500 for 60000 no-access h1/n0 h0/n0 0\n"
      "at 500 for 60000 no-access h1/n1 h0/n1 0\n");
  text = with(with(text, "comms=2", "comms=1"), "faults_ms=4000", "faults_ms=60000");
  if (is_only) text = with(text, "rails=2", "rails=1");
  const RunResult result = run_text(text);
  INFO(result.ending);
  CHECK(result.ended == 1);
  CHECK(result.ending.find("refused access to its memory") != std::string::npos);
  CHECK(result.last_end_ns < 5 * kSec);
}

TEST_CASE("simulation: the only device of a host is away for a minute", "[simulation]") {
  const std::string for_ms = GENERATE("100", "60000");
  const std::string text = with(calm(("at 500 for " + for_ms + " removed h1/n0 h0/n0 0\n").c_str()),
                                "faults_ms=4000", "faults_ms=62000");
  const RunResult result = run_text(with(text, "nics=2 rails=2", "nics=1 rails=1"));
  INFO(result.ending);
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
}

TEST_CASE("simulation: the only device of a host does not come back", "[simulation]") {
  const std::string text =
      with(calm("at 500 for 200000 removed h1/n0 h0/n0 0\n"), "faults_ms=4000", "faults_ms=200000");
  const RunResult result = run_text(with(text, "nics=2 rails=2", "nics=1 rails=1"));
  CHECK(result.ended == 2);
  CHECK(result.ending.find("not back within BEELINE_DEVICE_WAIT") != std::string::npos);
  CHECK(result.last_end_ns < 122 * kSec);
}

TEST_CASE("simulation: a credit that a device has acknowledged and lost is granted again",
          "[simulation]") {
  std::string text = with(calm("at 500 for 3 discards h0/n0 h1/n0 0\n"
                               "at 500 for 3 discards h0/n1 h1/n1 0\n"),
                          "faults_ms=4000", "faults_ms=40000");
  text = with(text, "comms=2", "comms=1");
  const bool has_one_path = GENERATE(false, true);
  if (has_one_path) text = with(text, "nics=2 rails=2", "nics=2 rails=1");
  const RunResult result = run_text(text);
  CHECK(result.violation.empty());
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns > 29 * kSec);
  CHECK(result.longest_gap_ns < 35 * kSec);
}

TEST_CASE("simulation: a message whose completion a device has lost ends the comm",
          "[simulation]") {
  const RunResult result = run_text(with(with(calm("at 500 for 3 lost-completions h1/n0 h0/n0 0\n"
                                                   "at 500 for 3 lost-completions h1/n1 h0/n1 0\n"),
                                              "faults_ms=4000", "faults_ms=40000"),
                                         "comms=2", "comms=1"));
  CHECK(result.ended != 0);
  CHECK(result.ending.find("its device has acknowledged data that it has lost") !=
        std::string::npos);
  CHECK(result.last_end_ns < 35 * kSec);
}

TEST_CASE("simulation: a port that fails below GPU memory that needs flushes ends nothing",
          "[simulation]") {
  const bool is_only = GENERATE(false, true);
  std::string text = with(calm("at 500 for 1000 down h1/n0 h0/n0 0\n"
                               "at 2500 for 1000 down h1/n0 h0/n0 0\n"
                               "at 4500 for 1000 down h1/n0 h0/n0 0\n"
                               "at 6500 for 1000 down h1/n0 h0/n0 0\n"),
                          "faults_ms=4000", "faults_ms=9000");
  text = with(with(text, "gpu=0", "gpu=1"), "pace_us=5000", "pace_us=500");
  if (is_only) text = with(text, "nics=2 rails=2", "nics=1 rails=1");
  const RunResult result = run_text(text);
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
}

TEST_CASE("simulation: a flush that has failed is over when the data must be visible",
          "[simulation]") {
  std::string text = with(calm("at 500 for 2 status h1/n0 h0/n0 2\n"
                               "at 1500 for 2 status h1/n1 h0/n1 2\n"
                               "at 2500 for 2 status h1/n0 h0/n0 2\n"),
                          "gpu=0", "gpu=1");
  const RunResult result = run_text(with(text, "pace_us=5000", "pace_us=500"));
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
}

// No READ by one NIC flushes what another has written.
TEST_CASE("simulation: a rail moves when the GPU memory that its NIC has written is there",
          "[simulation]") {
  const RunResult result = run_text(
      "run seed=92011672 hosts=2 nics=2 rails=1 queue_pairs=2 comms=2 most_bytes=65536"
      " groups_at_once=6 pace_us=51451 poll_ms=47 gpu=1 standbys=1 give_up_ms=0 faults_ms=2886\n"
      "at 7.461 for 585.956 removed h1/n0 h0/n0 0\n"
      "at 338.655 for 40.563 down h0/n0 h1/n0 0\n"
      "at 953.882 for 812.909 down h1/n1 h0/n1 0\n");
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
}

TEST_CASE("simulation: messages whose NIC is removed go by a path that could not be made at first",
          "[simulation]") {
  const RunResult result = run_text(
      "run seed=92045439 hosts=2 nics=3 rails=2 queue_pairs=1 comms=2 most_bytes=1048576"
      " groups_at_once=3 pace_us=41708 poll_ms=29 gpu=0 standbys=1 give_up_ms=0 faults_ms=372"
      " missing=1\n"
      "at 31.425 for 1.149 removed h0/n1 h1/n1 0\n");
  INFO(result.violation << "; " << result.ending);
  CHECK(result.ended == 0);
}

// The own NIC is down until 4 s, and has to be well for 5 s more. Then it takes 100 ms to make a
// queue pair, of one path; the control thread makes several in turn.
TEST_CASE("simulation: a path goes back to its own NIC while another one carries the data",
          "[simulation]") {
  const std::string where = GENERATE("h0/n0 h1/n0", "h1/n0 h0/n0");
  const std::string paths = GENERATE("1", "3");
  CAPTURE(where, paths);
  std::string text = calm(("at 500 for 3500 down " + where + " 0\n").c_str());
  if (paths == "1") text += "at 4500 for 11000 slow-control " + where + " 100\n";
  text = with(with(text, "nics=2 rails=2", "nics=2 rails=1"), "queue_pairs=1 comms=2",
              "queue_pairs=" + paths + " comms=1");
  text = with(with(text, "standbys=0", "standbys=1"), "faults_ms=4000", "faults_ms=16000");
  const RunResult result = run_text(with(text, "poll_ms=20", "poll_ms=1"));
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
  CHECK(result.ended == 0);
  CHECK(result.moves != 0);
  CHECK(result.longest_late_gap_ns < 20 * kNsPerMs);
}

// Where another path works, the NIC is used ever less often.
TEST_CASE("simulation: a NIC that cannot READ the GPU memory that it has written ends the comm",
          "[simulation]") {
  const bool is_only = GENERATE(true, false);
  std::string text =
      with(calm("at 500 for 60000 no-reads h1/n0 h0/n0 0\n"), "faults_ms=4000", "faults_ms=60000");
  if (is_only) text = with(text, "nics=2 rails=2", "nics=1 rails=1");
  const RunResult result = run_text(with(text, "gpu=0", "gpu=1"));
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
  CHECK((result.ended != 0) == is_only);
  CHECK((result.ending.find("a READ of it by nic0 failed: no answer after all retries") !=
         std::string::npos) == is_only);
}

}  // namespace beeline::simulation
