// SPDX-License-Identifier: Apache-2.0
//
// The cost of large numbers: 64 processes with 8 devices each, and 10,000 queue pairs between two
// processes. Prints time and memory; each uses its own fabric.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/endpoint.h"
#include "bench/support/ranks.h"
#include "common/base/clock.h"
#include "softnic/fabric/fabric.h"

namespace beeline::bench {
namespace {

constexpr uint32_t kProcesses = 64;
constexpr uint32_t kDevices = 8;
constexpr size_t kQueuePairs = 10'000;
constexpr size_t kMemoryBytes = 4096;
constexpr uint32_t kDepth = 16;

// Creates the fabric on which ranks that start from now on run.
softnic::Holder make_fabric(const std::string& name, const softnic::FabricSpec& spec) {
  auto holder = softnic::Holder::hold(name, &spec);
  if (!holder) throw test::MustError(holder.error().text);
  ::setenv("SOFTNIC_FABRIC", name.c_str(), 1);
  return std::move(*holder);
}

// Private memory, and the share of shared memory.
double own_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  double kib = 0;
  while (file >> word) {
    if (word == "Pss:") file >> kib;
  }
  return kib;
}

// Its segment and the arenas, without the sysfs trees.
double fabric_kib(const softnic::Fabric& fabric) {
  double blocks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fabric.dir())) {
    struct stat facts = {};
    if (!entry.is_regular_file()) continue;
    if (::lstat(entry.path().c_str(), &facts) == 0) blocks += static_cast<double>(facts.st_blocks);
  }
  return blocks / 2;
}

struct Cost {
  double milliseconds;
  double kib;
};

double milliseconds_since(int64_t start) { return static_cast<double>(now_ns() - start) / 1e6; }

// Connects each process to its neighbor on all devices, and then sends a block in both directions
// on each.
void one_of_many(test::Peer& peer, const softnic::Fabric& fabric) {
  const double before = own_kib();
  const int64_t start = now_ns();
  const size_t other = peer.rank() ^ 1;
  std::vector<std::unique_ptr<Endpoint>> ends;
  for (size_t d = 0; d < kDevices; ++d) {
    ends.push_back(std::make_unique<Endpoint>("softnic" + std::to_string(d), kMemoryBytes));
    ends.back()->connect(peer, other);
  }
  peer.meet();
  for (const auto& end : ends) end->post({0, 0, kMemoryBytes});
  for (const auto& end : ends) end->wait_for(1);
  const Cost cost{milliseconds_since(start), own_kib() - before};
  if (peer.rank() != 0) {
    peer.send(0, cost);
  } else {
    std::vector<Cost> all{cost};
    for (size_t i = 1; i < peer.count(); ++i) all.push_back(peer.receive<Cost>(i));
    const auto slowest = std::max_element(all.begin(), all.end(), [](const Cost& a, const Cost& b) {
      return a.milliseconds < b.milliseconds;
    });
    double kib = 0;
    for (const Cost& each : all) kib += each.kib;
    fmt::print("{} processes with {} devices each, connected in pairs, a block both ways on all\n",
               kProcesses, kDevices);
    fmt::print("  {:<46}{:>10.0f} ms\n", "all of it, for the slowest process",
               slowest->milliseconds);
    fmt::print("  {:<46}{:>10.0f} KiB\n", "memory of a process (proportional set)",
               kib / static_cast<double>(kProcesses));
    fmt::print("  {:<46}{:>10.0f} KiB\n\n", "the fabric in /dev/shm", fabric_kib(fabric));
  }
  peer.meet();
}

ibv_qp* make_qp(const Endpoint& end) {
  ibv_qp_init_attr init{};
  init.send_cq = end.cq();
  init.recv_cq = end.cq();
  init.cap = {kDepth, kDepth, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = ibv_create_qp(end.pd(), &init);
  BL_MUST(qp != nullptr);
  return qp;
}

void one_of_two(test::Peer& peer, const softnic::Fabric& fabric) {
  Endpoint end("softnic0", kMemoryBytes);
  end.connect(peer, 1 - peer.rank());
  const double before = own_kib();
  const double fabric_before = fabric_kib(fabric);
  peer.meet();
  int64_t start = now_ns();
  std::vector<ibv_qp*> qps;
  for (size_t i = 0; i < kQueuePairs; ++i) qps.push_back(make_qp(end));
  const double made = milliseconds_since(start);
  std::vector<EndpointInfo> infos;
  for (ibv_qp* qp : qps) {
    EndpointInfo info = end.info();
    info.qp_num = qp->qp_num;
    infos.push_back(peer.exchange(info));
  }
  start = now_ns();
  for (size_t i = 0; i < kQueuePairs; ++i) end.connect(qps[i], infos[i]);
  const double connected = milliseconds_since(start);
  peer.meet();
  const double kib = own_kib() - before;
  const double shared = fabric_kib(fabric) - fabric_before;
  peer.meet();
  start = now_ns();
  for (ibv_qp* qp : qps) BL_MUST_OK(ibv_destroy_qp(qp));
  const double destroyed = milliseconds_since(start);
  peer.meet();
  if (peer.rank() != 0) return;
  constexpr auto kEach = static_cast<double>(kQueuePairs);
  fmt::print("{} queue pairs of depth {} in each of two processes, for one of them\n", kQueuePairs,
             kDepth);
  fmt::print("  {:<46}{:>10.1f} us\n", "made, each", 1e3 * made / kEach);
  fmt::print("  {:<46}{:>10.1f} us\n", "connected (INIT, RTR, RTS), each", 1e3 * connected / kEach);
  fmt::print("  {:<46}{:>10.1f} us\n", "destroyed, each", 1e3 * destroyed / kEach);
  fmt::print("  {:<46}{:>10.2f} KiB\n", "memory (proportional set), each", kib / kEach);
  fmt::print("  {:<46}{:>10.2f} KiB\n", "of it in /dev/shm, each", shared / kEach / 2);
}

int many_processes(const std::string& name) {
  const softnic::Holder holder =
      make_fabric(name + "-many", softnic::even_fabric(kProcesses, kDevices));
  std::vector<Rank> ranks;
  for (size_t i = 0; i < kProcesses; ++i) {
    ranks.push_back(
        {"h" + std::to_string(i), [&](test::Peer& peer) { one_of_many(peer, holder.fabric()); }});
  }
  return run_ranks(ranks);
}

int many_queue_pairs(const std::string& name) {
  const softnic::Holder holder = make_fabric(name + "-two", softnic::even_fabric(2, 1));
  std::vector<Rank> ranks;
  for (const char* host : {"h0", "h1"}) {
    ranks.push_back({host, [&](test::Peer& peer) { one_of_two(peer, holder.fabric()); }});
  }
  return run_ranks(ranks);
}

}  // namespace
}  // namespace beeline::bench

int main() {
  try {
    const std::string name = "scale-" + std::to_string(::getpid());
    const int many = beeline::bench::many_processes(name);
    return many != 0 ? many : beeline::bench::many_queue_pairs(name);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
