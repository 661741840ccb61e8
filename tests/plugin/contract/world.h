// SPDX-License-Identifier: Apache-2.0
//
// The devices that the tests use: a softnic fabric that this program holds, with processes on its
// hosts. If BL_TEST_DEVICES names two RDMA devices of this machine, the tests use these instead:
// every process then sees both, and tests with the tag [softnic] cannot run. The program itself
// never loads the plugin (except under the thread sanitizer, which cannot fork), so every test
// starts with a freshly loaded plugin.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <functional>
#include <iosfwd>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "tests/plugin/contract/net.h"
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

// Sets an environment variable (null: unsets it) as long as the object lives. Processes that are
// started meanwhile inherit it.
class Variable {
 public:
  Variable(const char* name, const char* value);
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable();

 private:
  const char* name_;
  bool was_set_;
  std::string before_;
};

// As long as it lives, no limit of the plugin ends a connection: who notices a fault has seen it.
struct NoTimeouts {
  Variable of_peer{"BEELINE_PEER_TIMEOUT", "3600s"};
  Variable of_path{"BEELINE_STALL_TIMEOUT", "3600s"};
};

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
// An object in memory that all processes of a test share.
template <class T>
T& make_shared_object() {
  void* const memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BL_MUST(memory != MAP_FAILED);
  return *new (memory) T;
}
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

// All versions that the plugin exports; exports_test.sh checks that none is missing. For what the
// tables themselves do: the types of arguments, and which functions there are.
std::vector<Abi> every_abi();
// One version without contexts, requests for flushes and traffic classes, and the newest.
std::vector<Abi> some_abis();
// The newest version, with threads and with processes, for what may depend on these.
std::vector<Way> ways();
// The way of all other tests.
inline PeerMode usual_mode() { return kProcessesWork ? PeerMode::kProcesses : PeerMode::kThreads; }
inline Way usual_way() { return {kNewest, usual_mode()}; }

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
