// SPDX-License-Identifier: Apache-2.0
//
// The fabric's log: its lines, concurrent writers, and its end when it is full.
#include "softnic/fabric/fabric_log.h"

#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "common/base/fd.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

std::vector<std::string> log_of(const TestFabric& fabric) {
  std::ifstream file(softnic::log_path(fabric.fabric()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The line without its time.
std::vector<std::string> told_by(const TestFabric& fabric) {
  std::vector<std::string> lines = log_of(fabric);
  for (std::string& line : lines) line.erase(0, line.find("  ") + 2);
  return lines;
}

std::uintmax_t log_bytes(const TestFabric& fabric) {
  return std::filesystem::file_size(softnic::log_path(fabric.fabric()));
}

}  // namespace

TEST_CASE("fault_log: commands and events are logged in order and with their time",
          "[softnic][fault]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  fabric.command("h0/softnic0", "down");
  fabric.command("h0/softnic1:1", "loss=2.5%");
  fabric.command("h0/softnic0", "remove");
  fabric.command("h0/softnic0", "return");
  CHECK(told_by(fabric) == std::vector<std::string>{
                               "-  the fabric was created",
                               "h0/softnic0:1  down",
                               "h0/softnic0:1  sent port_err to 1 open context",
                               "h0/softnic1:1  loss=2.5%",
                               "h0/softnic0  remove",
                               "h0/softnic0  sent device_fatal to 1 open context",
                               "h0/softnic0  return",
                           });
  double last = 0;
  for (const std::string& line : log_of(fabric)) {
    CHECK(std::regex_search(line, std::regex("^[0-9]+\\.[0-9]{6}  ")));
    CHECK(std::stod(line) >= last);
    last = std::stod(line);
  }
  CHECK(last < 600);  // since the creation of the fabric, not since boot
}

TEST_CASE("fault_log: a new fabric of the same name begins a new log", "[softnic][fault]") {
  const std::string name = TestFabric::fresh_name();
  for (int round = 0; round < 2; ++round) {
    const auto holder = softnic::Holder::hold(name, nullptr);
    REQUIRE(holder);
    const auto second = softnic::Holder::hold(name, nullptr);  // joins and creates nothing
    REQUIRE(second);
    std::ifstream file(softnic::log_path(holder->fabric()));
    std::string first;
    std::string more;
    CHECK(std::getline(file, first));
    CHECK(!std::getline(file, more));
  }
}

TEST_CASE("fault_log: an entry is one line, whatever is in it", "[softnic][fault]") {
  const TestFabric fabric;
  softnic::log_port(fabric.fabric(), {1, 0}, "struck:\nerror" + std::string(1000, '!'));
  const std::vector<std::string> lines = told_by(fabric);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[1], Catch::StartsWith("h0/softnic1:1  struck: error!!!"));
  CHECK(lines[1].size() < 500);
}

TEST_CASE("fault_log: lines of many writers stay whole", "[softnic][fault]") {
  const TestFabric fabric;
  constexpr int kWriters = 4;
  constexpr int kLines = 500;
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int writer = 0; writer < kWriters; ++writer)
    writers.emplace_back([&, writer] {
      const std::string words(static_cast<std::size_t>(20 + 40 * writer),
                              static_cast<char>('a' + writer));
      for (int i = 0; i < kLines; ++i) softnic::log_fabric(fabric.fabric(), words);
    });
  for (std::thread& writer : writers) writer.join();
  const std::vector<std::string> lines = told_by(fabric);
  CHECK(lines.size() == 1 + kWriters * kLines);
  for (std::size_t i = 1; i < lines.size(); ++i)
    CHECK(lines[i].find_first_not_of(lines[i].back(), 3) == std::string::npos);
}

TEST_CASE("fault_log: a full log ends with one line that says so", "[softnic][fault]") {
  const TestFabric fabric;
  const std::string path = softnic::log_path(fabric.fabric());
  // A sparse file, a little shorter than the limit.
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(softnic::kMaxLogBytes) - 1000);
  for (int i = 0; i < 100; ++i) softnic::log_fabric(fabric.fabric(), "a line of some length");
  const std::uintmax_t full = log_bytes(fabric);
  CHECK(full == static_cast<std::uintmax_t>(softnic::kMaxLogBytes));
  const std::vector<std::string> lines = told_by(fabric);
  CHECK_THAT(lines.back(), Catch::StartsWith("-  the log is full: nothing more is logged"));
  CHECK_THAT(lines[lines.size() - 2], Catch::EndsWith("a line of some length"));
  softnic::log_fabric(fabric.fabric(), "x");
  CHECK(log_bytes(fabric) == full);
}

TEST_CASE("fault_log: a stopped process that holds the log's lock stops no other",
          "[softnic][fault]") {
  const TestFabric fabric;
  const std::string path = softnic::log_path(fabric.fabric());
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(softnic::kMaxLogBytes) - 10);
  const beeline::UniqueFd holder(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(holder.get(), LOCK_EX) == 0);
  softnic::log_fabric(fabric.fabric(), "lost");
  CHECK(log_bytes(fabric) == static_cast<std::uintmax_t>(softnic::kMaxLogBytes) - 10);
}
