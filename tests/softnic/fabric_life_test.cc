// SPDX-License-Identifier: Apache-2.0
//
// How a fabric begins and ends, and what sudden deaths leave behind: nothing that the next one does
// not clear.
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
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kLifeBig = 4u << 20;

std::string dir_of(const std::string& name) {
  const auto dir = softnic::state_dir(name);
  BL_MUST(dir.has_value());
  return *dir;
}

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

bool is_listed(const std::string& name) {
  const auto all = softnic::list_fabrics();
  return std::find(all.begin(), all.end(), name) != all.end();
}

std::set<std::string> entries(const std::string& path) {
  std::set<std::string> names;
  DIR* dir = opendir(path.c_str());
  BL_MUST(dir != nullptr);
  while (const dirent* entry = readdir(dir)) names.insert(entry->d_name);
  closedir(dir);
  return names;
}

// Holds a fabric that the caller names, in this process.
softnic::Holder hold(const std::string& name) {
  auto holder = softnic::Holder::hold(name, nullptr);
  BL_MUST(holder.has_value());
  return std::move(holder).value();
}

// A process in the middle of its work: a device, a queue pair, and a target for a peer's writes.
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

TEST_CASE("fabric_life: a fabric is there while it is held, and gone after", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const std::string dir = dir_of(name);
  CHECK(!exists(dir));
  {
    const softnic::Holder holder = hold(name);
    CHECK(exists(dir));
    CHECK(is_listed(name));
    CHECK(!softnic::clean_up_fabric(name));  // it lives
    CHECK(exists(dir));
  }
  CHECK(!exists(dir));
  CHECK(!is_listed(name));
}

TEST_CASE("fabric_life: two holders hold, the second's end removes it", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  std::optional<softnic::Holder> first(hold(name));
  std::optional<softnic::Holder> second(hold(name));
  first.reset();
  CHECK(exists(dir_of(name)));
  second.reset();
  CHECK(!exists(dir_of(name)));
}

TEST_CASE("fabric_life: a living fabric is not replaced by another", "[softnic][fabric]") {
  TestFabric fabric;
  const softnic::FabricSpec spec = softnic::default_fabric();
  CHECK(!softnic::Holder::hold(fabric.name(), &spec).has_value());
  const ContextPtr context = open_device("softnic0");
  CHECK(context != nullptr);
}

TEST_CASE("fabric_life: an open device keeps the fabric, its closing ends it",
          "[softnic][fabric]") {
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

TEST_CASE("fabric_life: a device list takes part too", "[softnic][fabric]") {
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

TEST_CASE("fabric_life: the census counts holders and processes", "[softnic][fabric]") {
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

TEST_CASE("fabric_life: a process of another may end the fabric", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  TestFabric fabric;
  const std::string dir = dir_of(fabric.name());
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) {
                                     const Resident self("softnic0");
                                     peer.meet();  // the test lets go now
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

TEST_CASE("fabric_life: what a killed process leaves is cleared by the next", "[softnic][fabric]") {
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

TEST_CASE("fabric_life: killed processes do not use seats up", "[softnic][fabric]") {
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
                                       peer.kill(0);  // anywhere in its stream of writes
                                     }});
    const ContextPtr next = open_device("softnic0");
    CHECK(softnic::find_participants(fabric.fabric()).slots.size() == 1);
  }
}

TEST_CASE("fabric_life: a forked child does not keep its dead parent's seat", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);  // the orphan comes to us
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

TEST_CASE("fabric_life: a forked child can take part beside its parent", "[softnic][fabric]") {
  if (!kProcessesWork) return;
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

TEST_CASE("fabric_life: a killed holder alone leaves a fabric that the next clears",
          "[softnic][fabric]") {
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
    const auto fresh = softnic::Holder::hold(name, &spec);  // dead, so a new one may take the name
    REQUIRE(fresh.has_value());
    CHECK(fresh->fabric().header().host_count == 1);
  }
  CHECK(!is_listed(name));
  CHECK(!exists(dir_of(name)));
}

TEST_CASE("fabric_life: a killed holder does not disturb those at work", "[softnic][fabric]") {
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

namespace {

constexpr uid_t kStranger = 65534;

// A link or directory at the path of a fabric that does not exist yet. Removed at the end.
class Planted {
 public:
  explicit Planted(std::string path) : path_(std::move(path)) {}
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
  ~Planted() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// In a process of its own, as somebody without rights; WORK says whether it went as it should.
template <class Work>
void as_stranger(const Work& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool changed =
        setgroups(0, nullptr) == 0 && setgid(kStranger) == 0 && setuid(kStranger) == 0;
    _exit(changed && work() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

void must_refuse(const std::string& name, const std::string& why) {
  for (int i = 0; i < 2; ++i) {
    const auto holder = softnic::Holder::hold(name, nullptr);
    REQUIRE_FALSE(holder);
    CHECK(holder.error().text.find(why) != std::string::npos);
    const auto fabric = softnic::Fabric::open(name);
    REQUIRE_FALSE(fabric);
    CHECK(fabric.error().text.find(why) != std::string::npos);
    CHECK_FALSE(is_listed(name));
    softnic::clean_up_fabric(name);
  }
}

}  // namespace

TEST_CASE(
    "fabric_life: a link where the fabric would be is refused, and what it names is left alone",
    "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const Planted victim("/dev/shm/softnic-test-victim-" + name);
  std::filesystem::create_directories(victim.path() + "/inner");
  std::ofstream(victim.path() + "/inner/file") << "precious";
  const Planted link(dir_of(name));
  std::filesystem::create_directory_symlink(victim.path(), link.path());
  must_refuse(name, "cannot open " + link.path());
  CHECK(std::filesystem::file_size(victim.path() + "/inner/file") == 8);
}

TEST_CASE("fabric_life: another user's directory is refused, and left alone", "[softnic][fabric]") {
  if (getuid() != 0) return;  // only root can give a directory away
  const std::string name = TestFabric::fresh_name();
  const Planted planted(dir_of(name));
  std::filesystem::create_directory(planted.path());
  std::ofstream(planted.path() + "/file") << "precious";
  REQUIRE(chown(planted.path().c_str(), kStranger, kStranger) == 0);
  must_refuse(name, "belongs to another user (uid 65534)");
  CHECK(std::filesystem::file_size(planted.path() + "/file") == 8);
}

TEST_CASE("fabric_life: what another user made at a fabric's path is refused, and left alone",
          "[softnic][fabric]") {
  if (getuid() != 0) return;  // only root can be another user
  const std::string name = TestFabric::fresh_name();
  const Planted victim("/dev/shm/softnic-test-victim-" + name);
  std::filesystem::create_directories(victim.path() + "/inner");
  std::ofstream(victim.path() + "/inner/file") << "precious";
  const Planted planted(dir_of(name));
  SECTION("a link") {
    as_stranger([&] { return symlink(victim.path().c_str(), planted.path().c_str()) == 0; });
    must_refuse(name, "cannot open " + planted.path());
  }
  SECTION("a directory of their own, closed to us") {
    as_stranger([&] { return mkdir(planted.path().c_str(), 0700) == 0; });
    must_refuse(name, "belongs to another user (uid 65534)");
  }
  SECTION("a directory of their own, with a link in it") {
    as_stranger([&] {
      return mkdir(planted.path().c_str(), 0777) == 0 &&
             symlink(victim.path().c_str(), (planted.path() + "/h0").c_str()) == 0;
    });
    must_refuse(name, "belongs to another user (uid 65534)");
  }
  CHECK(std::filesystem::file_size(victim.path() + "/inner/file") == 8);
}

TEST_CASE("fabric_life: another user cannot open, join or end a fabric", "[softnic][fabric]") {
  if (getuid() != 0) return;  // only root can be another user
  const TestFabric fabric;
  as_stranger([&] {
    const std::string file = fabric.fabric().dir() + "/fabric";
    const bool closed = open(file.c_str(), O_RDONLY) < 0 && errno == EACCES;
    // Names are by user: the same one is another fabric, which the other may have beside ours.
    return closed && !is_listed(fabric.name()) && !softnic::Fabric::open(fabric.name()) &&
           rename(fabric.fabric().dir().c_str(), "/dev/shm/softnic-test-taken") != 0;
  });
  CHECK(softnic::Fabric::open(fabric.name()));
}

TEST_CASE("fabric_life: what takes the name of a fabric that ended is not written to",
          "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  std::optional<softnic::Holder> holder(hold(name));
  const auto fabric = softnic::Fabric::open(name);
  REQUIRE(fabric);
  holder.reset();
  const Planted victim("/dev/shm/softnic-test-victim-" + name);
  std::ofstream(victim.path()) << "precious";
  const Planted impostor(dir_of(name));
  const std::string port = impostor.path() + "/h0/class/infiniband/softnic0/ports/1";
  std::filesystem::create_directories(port);
  std::ofstream(port + "/state") << "precious";
  std::filesystem::create_symlink(victim.path(), impostor.path() + "/log");
  const auto order = softnic::read_targeted_command(*fabric, "h0/softnic0", "down");
  REQUIRE(order);
  softnic::apply(*fabric, *order);
  CHECK(std::filesystem::file_size(victim.path()) == 8);
  CHECK(std::filesystem::file_size(port + "/state") == 8);
}

TEST_CASE("fabric_life: a link among a fabric's files is not followed", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  std::optional<softnic::Holder> holder(hold(name));
  const Planted victim("/dev/shm/softnic-test-victim-" + name);
  std::filesystem::create_directories(victim.path() + "/inner");
  std::ofstream(victim.path() + "/inner/file") << "precious";
  const std::string dir = dir_of(name);
  std::filesystem::create_directory_symlink(victim.path(), dir + "/link");
  std::filesystem::rename(dir + "/seats", dir + "/seats.aside");
  std::filesystem::create_symlink(dir + "/seats.aside", dir + "/seats");
  CHECK_FALSE(softnic::Fabric::open(name));
  std::filesystem::rename(dir + "/seats.aside", dir + "/seats");
  CHECK(softnic::Fabric::open(name));
  holder.reset();
  CHECK(!exists(dir));
  CHECK(std::filesystem::file_size(victim.path() + "/inner/file") == 8);
}

TEST_CASE("fabric_life: a directory that others may write to is refused", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const Planted planted(dir_of(name));
  std::filesystem::create_directory(planted.path());
  REQUIRE(chmod(planted.path().c_str(), 0777) == 0);
  must_refuse(name, "is open to other users");
}

TEST_CASE("fabric_life: a segment whose counts are too large is refused", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const softnic::Holder holder = hold(name);
  softnic::FabricHeader& header = holder.fabric().header();
  const auto refused = [&](std::uint32_t& count) {
    const std::uint32_t before = std::exchange(count, 0x7fffffff);
    const bool is_refused = !softnic::Fabric::open(name);
    count = before;
    return is_refused;
  };
  CHECK(softnic::Fabric::open(name));
  CHECK(refused(header.host_count));
  CHECK(refused(header.device_count));
  CHECK(refused(header.hosts[0].device_count));
  CHECK(refused(header.hosts[1].first_device));
  CHECK(refused(header.devices[0].port_count));
  CHECK(refused(header.devices[0].host));
}

namespace {

// In a process of its own, with a limit as low as it says.
template <class Work>
void limited(int resource, rlim_t most, const Work& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit limit{most, most};
    _exit(setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 && work() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

bool no_devices(int error) {
  errno = 0;
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list != nullptr) ibv_free_device_list(list);
  return list == nullptr && errno == error;
}

}  // namespace

TEST_CASE("fabric_life: whoever has no descriptors left does not take a living fabric for dead",
          "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  const auto first_free = static_cast<rlim_t>(dup(0));
  close(static_cast<int>(first_free));
  for (rlim_t left = 0; left < 12; ++left) {  // some numbers above the first may be in use
    INFO(left << " descriptors");
    limited(RLIMIT_NOFILE, first_free + left,
            [&] { return !softnic::clean_up_fabric(fabric.name()); });
    CHECK(softnic::Fabric::open(fabric.name()));
  }
}

TEST_CASE("fabric_life: a limit on the size of files is an error, and no signal",
          "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  limited(RLIMIT_FSIZE, 1 << 16, [] { return no_devices(EFBIG); });
  const std::string name = TestFabric::fresh_name();
  limited(RLIMIT_FSIZE, 1 << 16, [&] {
    const auto holder = softnic::Holder::hold(name, nullptr);
    return !holder && holder.error().text.find("File too large") != std::string::npos;
  });
  CHECK(!exists(dir_of(name)));
}

TEST_CASE("fabric_life: why there are no devices is in errno", "[softnic][fabric]") {
  {
    const TestFabric fabric;
    TestFabric::choose_host("h9");
    CHECK(no_devices(EINVAL));
  }
  setenv("SOFTNIC_FABRIC", TestFabric::fresh_name().c_str(), 1);
  CHECK(no_devices(ENOSYS));
  unsetenv("SOFTNIC_FABRIC");
}
