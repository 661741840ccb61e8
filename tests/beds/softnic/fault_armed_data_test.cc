// SPDX-License-Identifier: Apache-2.0
//
// Faults of the N-th work request, and programs that do not expect them.
#include <fstream>
#include <numeric>
#include <sstream>

#include "softnic/fabric/fabric_log.h"
#include "tests/beds/softnic/fault_data.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kBlocks = 8;
constexpr std::size_t kArmedSize = 4096;

struct ArmedScene {
  ArmedScene()
      : from(pair.a.buffer(kBlocks * kArmedSize)), into(pair.b.buffer(kBlocks * kArmedSize)) {
    from.fill(1);
  }

  void command(const std::string& text) { pair.fabric.command("h0/softnic0", text); }
  ibv_wc_status write_block(std::size_t i) {
    BL_MUST_OK(post(pair.a.qp, write_work(from.part(i * kArmedSize, kArmedSize),
                                          into.part(i * kArmedSize, kArmedSize), i)));
    return poll_one(pair.a.send_cq.get()).status;
  }
  std::uint64_t checksum(Buffer& of, std::size_t i) {
    const auto block = of.bytes(i * kArmedSize, kArmedSize);
    return std::accumulate(block.begin(), block.end(), std::uint64_t{0});
  }
  std::string log() {
    std::ifstream file(softnic::log_path(pair.fabric.fabric()));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  Pair pair;
  Buffer from;
  Buffer into;
};

// Assumes that a completion means success.
bool naive_counts_completions(ArmedScene& scene) {
  for (std::size_t i = 0; i < kBlocks; ++i) (void)scene.write_block(i);
  return scene.into.has(1);
}

// Checks the status of the completion.
bool careful_reads_status(ArmedScene& scene) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (scene.write_block(i) == IBV_WC_SUCCESS) continue;
    connect_both(scene.pair.a.qp, scene.pair.b.qp);
    if (scene.write_block(i) != IBV_WC_SUCCESS) return false;
  }
  return scene.into.has(1);
}

// Assumes that success means correct data.
bool naive_trusts_success(ArmedScene& scene) {
  for (std::size_t i = 0; i < kBlocks; ++i) BL_MUST(scene.write_block(i) == IBV_WC_SUCCESS);
  return scene.into.has(1);
}

// Compares sent and received data.
bool careful_compares(ArmedScene& scene) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    do {
      BL_MUST(scene.write_block(i) == IBV_WC_SUCCESS);
    } while (scene.checksum(scene.from, i) != scene.checksum(scene.into, i));
  }
  return scene.into.has(1);
}

}  // namespace

TEST_CASE("armed: a completion can be a failure", "[softnic][armed]") {
  ArmedScene naive;
  naive.command("error=retry_exc_err@4");
  CHECK_FALSE(naive_counts_completions(naive));
  ArmedScene careful;
  careful.command("error=retry_exc_err@4");
  CHECK(careful_reads_status(careful));
}

TEST_CASE("armed: a successful completion can come with wrong bytes", "[softnic][armed]") {
  const std::string fault = GENERATE("corrupt@4", "discard=4096@4");
  CAPTURE(fault);
  ArmedScene naive;
  naive.command(fault);
  CHECK_FALSE(naive_trusts_success(naive));
  ArmedScene careful;
  careful.command(fault);
  CHECK(careful_compares(careful));
}

TEST_CASE("armed: the fabric's log names the request that a fault hits", "[softnic][armed]") {
  ArmedScene scene;
  scene.command("error=rem_op_err@3");
  scene.command("corrupt@2");
  scene.command("discard=4096@1");
  const std::string end_of_line =
      " hits queue pair " + std::to_string(scene.pair.a.qp->qp_num) + ", wr_id ";
  CHECK(scene.log().find("hits queue pair") == std::string::npos);
  CHECK(scene.write_block(0) == IBV_WC_SUCCESS);
  CHECK(scene.log().find("h0/softnic0:1  discard" + end_of_line + "0\n") != std::string::npos);
  CHECK(scene.log().find("corrupt" + end_of_line) == std::string::npos);
  CHECK(scene.write_block(1) == IBV_WC_SUCCESS);
  CHECK(scene.log().find("h0/softnic0:1  corrupt" + end_of_line + "1\n") != std::string::npos);
  CHECK(scene.write_block(2) == IBV_WC_REM_OP_ERR);
  CHECK(scene.log().find("h0/softnic0:1  error=rem_op_err" + end_of_line + "2\n") !=
        std::string::npos);
}
