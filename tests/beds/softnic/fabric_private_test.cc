// SPDX-License-Identifier: Apache-2.0
//
// The directory of a fabric is private to one user. Links, files and directories that another user
// could have put in its place are refused and not changed.
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "softnic/fabric/port_command.h"
#include "tests/beds/softnic/fabric_dir.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr uid_t kStranger = 65534;

// Something at the path of a fabric that does not exist yet. The destructor removes it.
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

// Runs `work` in a child process as a user without rights. `work` returns whether it succeeded.
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

TEST_CASE("fabric_private: a link at the fabric's path is refused and its target is not changed",
          "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const Planted victim("/dev/shm/softnic-test-victim-" + name);
  std::filesystem::create_directories(victim.path() + "/inner");
  std::ofstream(victim.path() + "/inner/file") << "precious";
  const Planted link(dir_of(name));
  std::filesystem::create_directory_symlink(victim.path(), link.path());
  must_refuse(name, link.path() + " is a symbolic link, which softnic does not follow: remove it");
  CHECK(std::filesystem::file_size(victim.path() + "/inner/file") == 8);
}

TEST_CASE("fabric_private: a file at the fabric's path is refused", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const Planted file(dir_of(name));
  std::ofstream(file.path()) << "precious";
  must_refuse(name, file.path() + " is not a directory: remove it, or choose another --name");
  CHECK(std::filesystem::file_size(file.path()) == 8);
}

TEST_CASE("fabric_private: another user's directory is refused and not changed",
          "[softnic][fabric]") {
  if (getuid() != 0) return;  // only root can give a directory away
  const std::string name = TestFabric::fresh_name();
  const Planted planted(dir_of(name));
  std::filesystem::create_directory(planted.path());
  std::ofstream(planted.path() + "/file") << "precious";
  REQUIRE(chown(planted.path().c_str(), kStranger, kStranger) == 0);
  must_refuse(name, "belongs to another user (uid 65534)");
  CHECK(std::filesystem::file_size(planted.path() + "/file") == 8);
}

TEST_CASE("fabric_private: links and directories of another user are refused and not changed",
          "[softnic][fabric]") {
  if (getuid() != 0) return;  // only root can be another user
  const std::string name = TestFabric::fresh_name();
  const Planted victim("/dev/shm/softnic-test-victim-" + name);
  std::filesystem::create_directories(victim.path() + "/inner");
  std::ofstream(victim.path() + "/inner/file") << "precious";
  const Planted planted(dir_of(name));
  SECTION("a link") {
    as_stranger([&] { return symlink(victim.path().c_str(), planted.path().c_str()) == 0; });
    must_refuse(name, planted.path() + " is a symbolic link");
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

TEST_CASE("fabric_private: another user cannot open, join or remove a fabric",
          "[softnic][fabric]") {
  if (getuid() != 0) return;  // only root can be another user
  const TestFabric fabric;
  as_stranger([&] {
    const std::string file = fabric.fabric().dir() + "/fabric";
    const bool closed = open(file.c_str(), O_RDONLY) < 0 && errno == EACCES;
    // Fabric names are separate for each user, so another user can have a fabric of the same name.
    return closed && !is_listed(fabric.name()) && !softnic::Fabric::open(fabric.name()) &&
           rename(fabric.fabric().dir().c_str(), "/dev/shm/softnic-test-taken") != 0;
  });
  CHECK(softnic::Fabric::open(fabric.name()));
}

TEST_CASE("fabric_private: a directory that replaces an ended fabric is not written to",
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

TEST_CASE("fabric_private: a link among a fabric's files is not followed", "[softnic][fabric]") {
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

TEST_CASE("fabric_private: a directory that others may write to is refused", "[softnic][fabric]") {
  const std::string name = TestFabric::fresh_name();
  const Planted planted(dir_of(name));
  std::filesystem::create_directory(planted.path());
  REQUIRE(chmod(planted.path().c_str(), 0777) == 0);
  must_refuse(name, "is open to other users");
}

TEST_CASE("fabric_private: a segment whose counts are too large is refused", "[softnic][fabric]") {
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
