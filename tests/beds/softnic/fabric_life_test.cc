// SPDX-License-Identifier: Apache-2.0
//
// Creation and removal of fabrics. The next process removes what killed processes leave behind.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "softnic/fabric/port_command.h"
#include "tests/beds/softnic/fabric_dir.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kLifeBig = 4u << 20;

std::set<std::string> entries(const std::string& path) {
  std::set<std::string> names;
  DIR* dir = opendir(path.c_str());
  BL_MUST(dir != nullptr);
  while (const dirent* entry = readdir(dir)) names.insert(entry->d_name);
  closedir(dir);
  return names;
}

// A working process: a device, a queue pair, and memory for a peer's writes.
struct Resident {
  explicit Resident(const char* device) : end(device), memory(end.buffer(kLifeBig)) {}

  // Writes to itself until it is killed.
  [[noreturn]] void write_for_ever() {
    connect(end.qp, address_of(end.qp));
    for (std::uint64_t i = 0;; ++i) {
      BL_MUST_OK(post(end.qp, write_work(memory.part(0, kLifeBig / 2),
                                         memory.part(kLifeBig / 2, kLifeBig / 2), i)));
      must_complete(end.send_cq.get(), i);
    }
  }

  Endpoint end;
  Buffer memory;
};

}  // namespace

TEST_CASE("fabric_life: a fabric exists as long as it has a holder", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const std::string dir = dir_of(name);
  CHECK(!exists(dir));
  {
    const softnic::Holder holder = hold(name);
    CHECK(exists(dir));
    CHECK(is_listed(name));
    CHECK(!softnic::clean_up_fabric(name));  // it is alive
    CHECK(exists(dir));
  }
  CHECK(!exists(dir));
  CHECK(!is_listed(name));
}

TEST_CASE("fabric_life: the last of two holders removes the fabric", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  std::optional<softnic::Holder> first(hold(name));
  std::optional<softnic::Holder> second(hold(name));
  first.reset();
  CHECK(exists(dir_of(name)));
  second.reset();
  CHECK(!exists(dir_of(name)));
}

TEST_CASE("fabric_life: a live fabric is not replaced by another", "[softnic][fabric]") {
  TestFabric fabric;
  const softnic::FabricSpec spec = softnic::default_fabric();
  CHECK(!softnic::Holder::hold(fabric.name(), &spec).has_value());
  const ContextPtr context = open_device("softnic0");
  CHECK(context != nullptr);
}

TEST_CASE("fabric_life: a fabric exists until its last device is closed", "[softnic][fabric]") {
  TestFabric fabric;
  const std::string dir = dir_of(fabric.name());
  {
    Endpoint end("softnic0");
    fabric.let_go();
    CHECK(exists(dir));
    connect(end.qp, address_of(end.qp));
    REQUIRE(post(end.qp, nothing_work(1)) == 0);
    must_complete(end.send_cq.get(), 1);
  }
  CHECK(!exists(dir));
}

TEST_CASE("fabric_life: a device list keeps the fabric", "[softnic][fabric]") {
  TestFabric fabric;
  const std::string dir = dir_of(fabric.name());
  ibv_device** list = ibv_get_device_list(nullptr);
  REQUIRE(list != nullptr);
  CHECK(softnic::find_participants(fabric.fabric()).slots.size() == 1);
  fabric.let_go();
  CHECK(exists(dir));
  ibv_free_device_list(list);
  CHECK(!exists(dir));
}

TEST_CASE("fabric_life: holders and processes are counted", "[softnic][fabric]") {
  const TestFabric fabric;
  CHECK(softnic::find_participants(fabric.fabric()).holders == 1);
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
  {
    const ContextPtr one = open_device("softnic0");
    const ContextPtr two = open_device("softnic1");
    CHECK(softnic::find_participants(fabric.fabric()).slots.size() == 1);  // one process, one seat
  }
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
}

TEST_CASE("fabric_life: a fabric outlives its holder while another process uses it",
          "[softnic][fabric]") {
  if (!kProcessesWork) return;
  TestFabric fabric;
  const std::string dir = dir_of(fabric.name());
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     const Resident self("softnic0");
                                     peer.meet();  // the test releases its holder now
                                     peer.receive<bool>(1);
                                     BL_MUST(exists(dir));
                                   },
                                   [&](Peer& peer) {
                                     peer.meet();
                                     peer.send(0, true);
                                   }});
  CHECK(exists(dir));
  fabric.let_go();
  CHECK(!exists(dir));
}

TEST_CASE("fabric_life: the next process removes files of a killed one", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  const std::string dir = dir_of(fabric.name());
  const std::set<std::string> before = entries(dir);
  const auto with_one_process = [&] {
    const ContextPtr one = open_device("softnic0");
    return entries(dir).size();
  };
  const std::size_t usual = with_one_process();
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     const Resident self("softnic0");
                                     const Resident twice("softnic0");
                                     const Resident other("softnic1");
                                     peer.send(1, true);
                                     peer.receive<bool>(1);  // never comes
                                   },
                                   [&](Peer& peer) {
                                     peer.receive<bool>(0);
                                     peer.kill(0);
                                   }});
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
  CHECK(with_one_process() == usual);
  CHECK(entries(dir) == before);
}

TEST_CASE("fabric_life: seats of killed processes are reused", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  for (int round = 0; round < 20; ++round) {
    run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                       Resident self("softnic0");
                                       peer.send(1, true);
                                       self.write_for_ever();
                                     },
                                     [&](Peer& peer) {
                                       peer.receive<bool>(0);
                                       peer.kill(0);  // at any point of its writes
                                     }});
    const ContextPtr next = open_device("softnic0");
    CHECK(softnic::find_participants(fabric.fabric()).slots.size() == 1);
  }
}

TEST_CASE("fabric_life: a forked child does not keep its dead parent's seat", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);  // orphans become children of this process
  int lifeline[2];                                 // it lives until this test closes its end
  REQUIRE(pipe(lifeline) == 0);
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     const Resident self("softnic0");
                                     int born[2];
                                     BL_MUST(pipe(born) == 0);
                                     char byte = 0;
                                     if (fork() == 0) {
                                       close(lifeline[1]);
                                       const bool told = write(born[1], &byte, 1) == 1;
                                       _exit(told && read(lifeline[0], &byte, 1) == 0 ? 0 : 1);
                                     }
                                     BL_MUST(read(born[0], &byte, 1) == 1);
                                     peer.send(1, true);
                                     peer.receive<bool>(1);  // never comes
                                   },
                                   [&](Peer& peer) {
                                     peer.receive<bool>(0);
                                     peer.kill(0);
                                   }});
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
  close(lifeline[0]);
  close(lifeline[1]);
  int status = -1;
  CHECK(wait(&status) > 0);
  CHECK(status == 0);
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
}

TEST_CASE("fabric_life: a forked child can join beside its parent", "[softnic][fabric]") {
  if (!kForkBesideThreadsWorks) return;
  const TestFabric fabric;
  Resident self("softnic0");
  run_peers(PeerMode::kProcesses, {[](Peer&) {
              Endpoint own("softnic1");
              connect(own.qp, address_of(own.qp));
              BL_MUST_OK(post(own.qp, nothing_work(1)));
              must_complete(own.send_cq.get(), 1);
            }});
  CHECK(softnic::find_participants(fabric.fabric()).slots.size() == 1);
  connect(self.end.qp, address_of(self.end.qp));
  REQUIRE(post(self.end.qp, nothing_work(2)) == 0);
  must_complete(self.end.send_cq.get(), 2);
}

TEST_CASE("fabric_life: the next holder replaces the fabric of a killed one", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const std::string name = TestFabric::fresh_name();
  const bool by_sweep = GENERATE(false, true);
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     const softnic::Holder holder = hold(name);
                                     peer.send(1, true);
                                     peer.receive<bool>(1);  // never comes
                                   },
                                   [&](Peer& peer) {
                                     peer.receive<bool>(0);
                                     peer.kill(0);
                                   }});
  CHECK(is_listed(name));
  if (by_sweep) {
    CHECK(softnic::clean_up_fabric(name));
  } else {
    softnic::FabricSpec spec = softnic::default_fabric();
    spec.hosts.resize(1);
    const auto fresh =
        softnic::Holder::hold(name, &spec);  // the old one is dead, so the name is free
    REQUIRE(fresh.has_value());
    CHECK(fresh->fabric().header().host_count == 1);
  }
  CHECK(!is_listed(name));
  CHECK(!exists(dir_of(name)));
}

TEST_CASE("fabric_life: a killed holder does not disturb running processes", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const std::string name = TestFabric::fresh_name();
  setenv("SOFTNIC_FABRIC", name.c_str(), 1);
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     const softnic::Holder holder = hold(name);
                                     peer.send(1, true);
                                     peer.receive<bool>(1);  // never comes
                                   },
                                   [&](Peer& peer) {
                                     peer.receive<bool>(0);
                                     Resident self("softnic0");
                                     peer.kill(0);
                                     connect(self.end.qp, address_of(self.end.qp));
                                     BL_MUST_OK(post(self.end.qp, nothing_work(1)));
                                     must_complete(self.end.send_cq.get(), 1);
                                   }});
  unsetenv("SOFTNIC_FABRIC");
  CHECK(!exists(dir_of(name)));
}
