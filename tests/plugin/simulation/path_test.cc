// SPDX-License-Identifier: Apache-2.0
//
// Faults of one path, and those that end a comm.
#include <string>

#include "tests/plugin/simulation/calm.h"
#include "tests/plugin/simulation/runs.h"
#include "tests/support/catch.h"

namespace beeline::simulation {

TEST_CASE("simulation: data moves by another path while one is being fenced", "[simulation]") {
  // A driver may take a second for it. Of two paths of the port, the second has to wait.
  std::string text =
      with(calm("at 400 for 3000 slow-control h0/n0 h1/n0 800\n"
                "at 400 for 3000 slow-control h1/n0 h0/n0 800\n"
                "at 500 for 1000 down h0/n0 h1/n0 0\n"),
           "queue_pairs=1 comms=2 most_bytes=65536", "queue_pairs=2 comms=1 most_bytes=64");
  const RunResult result = run_text(with(text, "pace_us=5000", "pace_us=20000"));
  CHECK(result.violation == "");
  CHECK(result.longest_gap_ns < 100 * kMs);
}

TEST_CASE("simulation: a path that is silent is left while another works", "[simulation]") {
  // Its device would go on retrying for half a minute.
  const RunResult result = run_text(with(calm("at 500 for 3000 both-ways h0/n0 h1/n0 0\n"),
                                         "faults_ms=4000", "faults_ms=4000 timeout=20"));
  CHECK(result.violation == "");
  CHECK(result.longest_gap_ns < 600 * kMs);
}

// Their device has acknowledged them, and the report about the path comes late. The other path is
// slow, so that many messages have chunks which wait. With the bug that this shows, one seed in ten
// breaks a promise.
TEST_CASE("simulation: chunks whose notice is not posted when their path fails are sent again",
          "[simulation]") {
  for (int seed = 1; seed <= 40; ++seed) {
    const RunResult result = run_text(
        "run seed=" + std::to_string(seed) +
        " hosts=2 nics=2 rails=2 queue_pairs=2 comms=1 most_bytes=4194304 groups_at_once=8 "
        "pace_us=200 poll_ms=20 gpu=0 standbys=0 give_up_ms=0 faults_ms=600 immediates=0\n"
        "at 50 for 500 slow-control h0/n0 h1/n0 800\n"
        "at 50 for 500 slow-control h1/n0 h0/n0 800\n"
        "at 50 for 400 delay h0/n1 h1/n1 10\n"
        "at " +
        std::to_string(100 + seed) + " for 100 down h0/n0 h1/n0 0\n");
    INFO("seed " << seed);
    CHECK(result.violation == "");
  }
}

TEST_CASE("simulation: an only path whose device reports nothing is made anew", "[simulation]") {
  // It would give up after two minutes.
  std::string text = with(calm("at 500 for 13000 both-ways h0/n0 h1/n0 0\n"), "faults_ms=4000",
                          "faults_ms=30000 timeout=22");
  text = with(with(text, "nics=2 rails=2", "nics=1 rails=1"), "comms=2", "comms=1");
  const RunResult result = run_text(text);
  INFO(result.ending);
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns < 15 * kSec);
}

TEST_CASE("simulation: a pause of the only path is waited for", "[simulation]") {
  const RunResult result = run_text(
      with(calm("at 500 for 300 both-ways h0/n0 h1/n0 0\n"), "nics=2 rails=2", "nics=1 rails=1"));
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns > 300 * kMs);
  CHECK(result.longest_gap_ns < 400 * kMs);
}

TEST_CASE("simulation: a comm without any path ends after BEELINE_GIVE_UP_AFTER", "[simulation]") {
  const auto [fault, why] = GENERATE(table<std::string, std::string>(
      {{"down", "its port is DOWN"}, {"both-ways", "attempts to connect it again: "}}));
  std::string text = calm(("at 500 for 60000 " + fault + " h0/n0 h1/n0 0\n").c_str());
  text = with(with(text, "nics=2 rails=2", "nics=1 rails=1"), "comms=2", "comms=1");
  const RunResult result =
      run_text(with(text, "give_up_ms=0 faults_ms=4000", "give_up_ms=5000 faults_ms=60000"));
  INFO(result.ending);
  CHECK(result.ended == 1);
  CHECK(result.last_end_ns < 7 * kSec);
  for (const std::string& words : {std::string("cannot go on: no path has worked since "),
                                   std::string("longer than BEELINE_GIVE_UP_AFTER"),
                                   std::string(":nic0:1 and h1:nic0:1"), why}) {
    CHECK(result.ending.find(words) != std::string::npos);
  }
}

TEST_CASE("simulation: a request that no link can have failed ends a comm with one path",
          "[simulation]") {
  // Nothing has arrived, so the peer grants nothing and cannot explain it.
  std::string text = calm(
      "at 500 for 3000 discards h1/n0 h0/n0 0\n"
      "at 500 for 0 status h0/n0 h1/n0 11\n");
  text = with(with(text, "nics=2 rails=2", "nics=1 rails=1"), "comms=2", "comms=1");
  const RunResult result = run_text(text);
  CHECK(result.ended == 1);
  CHECK(result.ending.find("refused the request, as devices do") != std::string::npos);
  CHECK(result.last_end_ns > 2500 * kMs);
  CHECK(result.last_end_ns < 3 * kSec);
}

TEST_CASE("simulation: an error that the peer's report explains is none of a program",
          "[simulation]") {
  const std::string text = with(calm("at 500 for 0 status h0/n0 h1/n0 11\n"), "comms=2", "comms=1");
  const RunResult result = run_text(with(text, "nics=2 rails=2", "nics=1 rails=1"));
  INFO(result.ending);
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns < 2 * kSec);  // after which it would end
}

// Ports that are down when the connection is made, a network that is not there yet, and devices
// that make no queue pairs, at either end.
TEST_CASE("simulation: paths that were missing at connect are added", "[simulation]") {
  const std::string fault =
      GENERATE(as<std::string>(), "", "at 0 for 3000 down h0/n1 h1/n1 0\n",
               "at 0 for 3000 down h1/n1 h0/n1 0\n", "at 0 for 3000 both-ways h0/n1 h1/n1 0\n",
               "at 0 for 3000 no-queues h1/n1 h0/n1 0\n",
               "at 0 for 3000 removed h0/n1 h1/n1 0\n"
               "at 4000 for 500 down h0/n0 h1/n0 0\n");
  const std::string options =
      GENERATE(as<std::string>(), "missing=2", "missing=2 immediates=0 cm=1");
  const bool is_gpu = GENERATE(false, true);
  std::string text = with(calm(fault.c_str()), "faults_ms=4000", "faults_ms=6000 " + options);
  if (is_gpu) text = with(text, "gpu=0", "gpu=1");
  const RunResult result = run_text(text);
  INFO(text);
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns < 2 * kSec);
}

TEST_CASE("simulation: a device that stands in need not know immediates", "[simulation]") {
  const RunResult result = run_text(
      with(with(with(calm("at 500 for 4000 down h0/n0 h1/n0 0\n"), "standbys=0", "standbys=1"),
                "rails=2", "rails=1"),
           "faults_ms=4000", "faults_ms=4000 standby_immediates=0"));
  CHECK(result.violation == "");
  CHECK(result.ended == 0);
  CHECK(result.longest_gap_ns < 2 * kSec);
}

TEST_CASE("simulation: paths of iWARP come back, also the only one", "[simulation]") {
  const bool is_only = GENERATE(false, true);
  std::string text = with(calm("at 500 for 0 status h0/n0 h1/n0 12\n"
                               "at 1500 for 1000 down h1/n0 h0/n0 0\n"
                               "at 3500 for 1000 both-ways h0/n0 h1/n0 0\n"),
                          "faults_ms=4000", "faults_ms=8000 immediates=0 cm=1");
  if (is_only) text = with(text, "nics=2 rails=2", "nics=1 rails=1");
  const RunResult result = run_text(text);
  INFO(result.violation << "; " << result.ending);
  CHECK(result.violation.empty());
  CHECK(result.ended == 0);
  CHECK(result.longest_late_gap_ns < 3 * kSec);
}

TEST_CASE("simulation: neither device moves its queue pair to the error state", "[simulation]") {
  const std::string text = calm(
      "at 400 for 60000 no-error-state h0/n0 h1/n0 0\n"
      "at 400 for 60000 no-error-state h1/n0 h0/n0 0\n"
      "at 500 for 0 status h0/n0 h1/n0 12\n");
  const RunResult result = run_text(with(text, "nics=2 rails=2", "nics=1 rails=1"));
  CHECK(result.ended != 0);
  CHECK(result.ending.find("the devices of neither end") != std::string::npos);
}

TEST_CASE("simulation: a message that only a lost device could carry ends the comm",
          "[simulation]") {
  const std::string whose = GENERATE("1", "2");
  std::string text = calm(whose == "1" ? "at 500 for 3000 removed h0/n0 h1/n0 0\n"
                                       : "at 500 for 3000 removed h1/n0 h0/n0 0\n");
  text = with(text, "faults_ms=4000", "faults_ms=4000 one_railed=" + whose);
  const RunResult result = run_text(with(text, "comms=2", "comms=1"));
  INFO(result.violation);
  CHECK(result.ended == 1);
  CHECK(result.ending.find("registered only with devices that are gone") != std::string::npos);
}

TEST_CASE("simulation: a path fails on which a device has lost a completion", "[simulation]") {
  // The data is in the receiver's memory, and nobody tells the receiver: the sender has the
  // acknowledgment, and does not send it again.
  const RunResult result = run_text(with(calm("at 500 for 3 lost-completions h1/n0 h0/n0 0\n"
                                              "at 500 for 3 lost-completions h1/n1 h0/n1 0\n"
                                              "at 510 for 1000 down h0/n0 h1/n0 0\n"
                                              "at 510 for 1000 down h0/n1 h1/n1 0\n"),
                                         "comms=2", "comms=1"));
  INFO(result.violation);
  CHECK(result.ended != 0);
  CHECK(result.ending.find("its device has acknowledged data that it has lost") !=
        std::string::npos);
  CHECK(result.last_end_ns < 4 * kSec);
}

}  // namespace beeline::simulation
