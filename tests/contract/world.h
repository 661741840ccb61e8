// SPDX-License-Identifier: Apache-2.0
//
// Where the tests take place: a fabric that this program holds, and processes on its hosts. Or, if
// BL_TEST_DEVICES names two, the RDMA devices that this machine has: every process then sees both,
// and tests with the tag [softnic] have no place there. The program itself never loads the plugin
// (but under the thread sanitizer, which cannot fork), so every test starts with a plugin that has
// seen nothing yet.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tests/contract/net.h"
#include "tests/support/peer_group.h"

namespace beeline::test {

// What is known of every device without asking the plugin.
struct FabricFacts {
  std::optional<int> speed_mbits;
  bool has_pci_paths;
  std::vector<std::string> devices;  // of each process
  std::vector<std::string> gpus;     // PCI addresses of those of h0, in order
};
const FabricFacts& fabric_facts();
// Whether things take long: under a sanitizer, and where an emulated kernel plays the devices.
bool is_slow();
inline uint32_t repetitions(uint32_t many, uint32_t few) { return is_slow() ? few : many; }
// A host of softnic's without any device.
inline constexpr const char* kBareHost = "bare";

// Whether the plugin has warned of this in this process. Where all tests share one process, it may
// have said it so often that it has fallen silent: then true.
bool has_warned(const std::vector<std::string>& parts);

// Puts this process on a host of softnic's. Before the plugin is loaded.
void enter_host(const std::string& host);
// As `softnic ctl` would: disturb("h0/softnic0", "remove"). The tests of this program share their
// fabric: what is done is to be undone.
void disturb(const std::string& target, const std::string& command);
// From now on, memory that is registered hides (or does not hide) what is written to it until it is
// flushed, if it is a GPU's.
void hide_gpu_writes(bool hide);
// "NAME=value" for a program that is to run on a host.
std::vector<std::string> host_environment(const std::string& host);

// A test's way: through which table, and where the two ends are.
struct Way {
  Abi abi;
  PeerMode mode;
};
std::ostream& operator<<(std::ostream& out, const Way& way);
std::ostream& operator<<(std::ostream& out, Abi abi);

// All versions that the plugin exports; exports_test.sh says which it has to.
std::vector<Abi> every_abi();
// The versions that a test runs through: all; where things take long, and on other kinds of
// network, which a table knows nothing of, one without contexts and the newest.
std::vector<Abi> main_abis();
std::vector<Abi> some_abis();     // these two, for what has to wait
std::vector<Way> ways();          // these versions, threads and processes
std::vector<Way> some_ways();     // the same of those two
std::vector<Way> process_ways();  // processes only; empty where they do not work

// Runs the body in a process of its own on h0; throws when it does. What the plugin logged is part
// of the reason. (Real devices know no hosts, here and below.)
void run_alone(const std::function<void()>& body);
// Runs two bodies: threads of one process on h0, or processes on h0 and h1.
void run_two(PeerMode mode, const PeerBody& first, const PeerBody& second);
// Processes: on h0 and h1 in turn.
void run_processes(const std::vector<PeerBody>& bodies);

}  // namespace beeline::test
