// SPDX-License-Identifier: Apache-2.0
//
// The devices that the tests use: a softnic fabric that this program holds, with processes on its
// hosts. If BL_TEST_DEVICES names two RDMA devices of this machine, the tests use these instead:
// every process then sees both, and tests with the tag [softnic] cannot run. The program itself
// never loads the plugin (except under the thread sanitizer, which cannot fork), so every test
// starts with a freshly loaded plugin.
#pragma once

#include <sys/types.h>

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tests/contract/net.h"
#include "tests/support/peer_group.h"

namespace beeline::test {

// Facts about the devices that do not come from the plugin.
struct FabricFacts {
  std::optional<int> speed_mbits;
  bool has_pci_paths;
  std::vector<std::string> devices;  // of each process
  std::vector<std::string> gpus;     // PCI addresses of those of h0, in order
};
const FabricFacts& fabric_facts();
// Whether everything takes long: under a sanitizer, and where an emulated kernel provides the
// devices.
bool is_slow();
inline uint32_t repetitions(uint32_t many, uint32_t few) { return is_slow() ? few : many; }
// A softnic host without any device.
inline constexpr const char* kBareHost = "bare";

// Whether the plugin has logged such a warning in this process. True where all tests share one
// process, since the plugin's rate limit may have suppressed it there.
bool has_warned(const std::vector<std::string>& parts);

// Puts this process on a softnic host. Call it before the plugin is loaded.
void enter_host(const std::string& host);
// Does what `softnic ctl` does: disturb("h0/softnic0", "remove"). The tests of this program share
// one fabric, so a test must undo each command.
void disturb(const std::string& target, const std::string& command);
// Undoes the faults of a NIC at the end of a test, even if the test fails: otherwise those that
// follow would fail as well. A changed GID stays.
class UndoneFaults {
 public:
  explicit UndoneFaults(std::string target) : target_(std::move(target)) {}
  UndoneFaults(const UndoneFaults&) = delete;
  UndoneFaults& operator=(const UndoneFaults&) = delete;
  ~UndoneFaults();

 private:
  std::string target_;
};
// Turns the hazard on or off for GPU memory that is registered from now on: while it is on, data
// that NICs have written there is hidden until it is flushed.
void hide_gpu_writes(bool hide);
// How many memory regions this process has registered with softnic; 0 with real devices.
size_t registered_regions();
// "NAME=value" strings for a program that is to run on a host.
std::vector<std::string> host_environment(const std::string& host);

// The version of the table that a test uses, and whether its two ends are threads or processes.
struct Way {
  Abi abi;
  PeerMode mode;
};
std::ostream& operator<<(std::ostream& out, const Way& way);
std::ostream& operator<<(std::ostream& out, Abi abi);

// All versions that the plugin exports; exports_test.sh checks that none is missing.
std::vector<Abi> every_abi();
// The versions that most tests run through: normally all. Where everything takes long, and on other
// kinds of network (on which the tables do not depend), it is some_abis().
std::vector<Abi> main_abis();
std::vector<Abi> some_abis();     // one version without contexts and the newest, for slow tests
std::vector<Way> ways();          // main_abis(), with threads and with processes
std::vector<Way> some_ways();     // some_abis(), with threads and with processes
std::vector<Way> process_ways();  // processes only; empty where they do not work

// Runs the body in a process of its own on h0. If the body throws, this throws, and adds the
// plugin's log to the reason. (With real devices there are no hosts, here and below.)
void run_alone(const std::function<void()>& body);
// Waits for a child of this process and returns its exit status. A child that takes too long is
// killed, which throws.
int wait_for_exit(pid_t child);
// Runs two bodies: threads of one process on h0, or processes on h0 and h1.
void run_two(PeerMode mode, const PeerBody& first, const PeerBody& second);
// Runs each body in a process, on h0 and h1 in turn.
void run_processes(const std::vector<PeerBody>& bodies);

}  // namespace beeline::test
