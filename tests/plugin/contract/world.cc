// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>

#include "softnic/fabric/arena.h"
#include "softnic/fabric/fabric.h"
#include "softnic/fabric/port_command.h"
#include "softnic/spec/spec_toml.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/plugin/contract/session.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace beeline::test {
namespace {

softnic::FabricSpec wanted_fabric() {
  softnic::FabricSpec spec = softnic::default_fabric();
  if (const char* const file = std::getenv("BL_TEST_FABRIC"); file != nullptr) {
    auto read = softnic::read_fabric_file(file);
    if (!read) throw MustError(read.error().text);
    spec = std::move(read).value();
  }
  for (softnic::HostSpec& host : spec.hosts) {
    for (const char* const name : {"test-gpu0", "test-gpu1"}) {
      host.gpus.emplace_back().name = name;
    }
  }
  softnic::HostSpec bare;
  bare.name = kBareHost;
  spec.hosts.push_back(bare);
  softnic::complete(spec);
  return spec;
}

FabricFacts facts_of(const softnic::FabricSpec& spec) {
  const std::vector<softnic::DeviceSpec>& devices = spec.hosts.at(0).devices;
  FabricFacts facts{};
  facts.speed_mbits = static_cast<int>(devices.at(0).ports.at(0).gbps * 1000);
  facts.has_pci_paths = true;
  for (const softnic::DeviceSpec& device : devices) facts.devices.push_back(device.name);
  for (const softnic::GpuSpec& gpu : spec.hosts.at(0).gpus) {
    facts.gpus.push_back(gpu.pci.substr(gpu.pci.rfind('/') + 1));
  }
  std::sort(facts.gpus.begin(), facts.gpus.end());
  return facts;
}

void set_default(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

std::vector<std::string> real_devices() {
  std::vector<std::string> names;
  const char* const list = std::getenv("BL_TEST_DEVICES");
  std::istringstream words(list == nullptr ? "" : list);
  for (std::string name; std::getline(words, name, ',');) names.push_back(name);
  if (list != nullptr && names.size() != 2) throw MustError("BL_TEST_DEVICES: name two devices");
  return names;
}

// The main process owns it as long as it lives. Forked children have a copy, whose destructor must
// do nothing.
class World {
 public:
  static World& get() {
    static World one;
    return one;
  }

  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    if (getpid() != owner_) return;
    delete holder_;
    // A plugin that is loaded in this process still uses a fabric. With real devices, the folder
    // has only statistics pages.
    if (holder_ == nullptr || !kProcessesWork) std::filesystem::remove_all(dir_);
  }

  const FabricFacts& facts() const noexcept { return facts_; }
  const softnic::Fabric& fabric() const {
    if (holder_ == nullptr) throw MustError("there is no fabric");
    return holder_->fabric();
  }
  // The environment variables that put a process on a host.
  std::vector<std::pair<const char*, std::string>> environment_on(const std::string& host) const {
    if (holder_ == nullptr) return {};
    return {{"SOFTNIC_HOST", host}, {"BEELINE_SYSFS_ROOT", holder_->fabric().sysfs_root(host)}};
  }

 private:
  World() : owner_(getpid()) {
    const std::vector<std::string> devices = real_devices();
    if (devices.empty()) {
      hold_fabric();
    } else {
      use_devices(devices);
    }
    set_default("NCCL_SOCKET_IFNAME", "lo");
    set_default("NCCL_NET_PLUGIN_REF_COUNT", "1");  // without it, the plugin warns
    set_default("NCCL_NET_GDR_LEVEL", "SYS");       // softgpu's GPUs are far from the NICs
    // Most of these processes do not close their comms and leave their statistics page behind; here
    // it is removed with the folder.
    set_default("BEELINE_STATS_DIR", dir_);
    set_default("BL_TEST_PLUGIN", BL_PLUGIN_PATH);
  }

  void hold_fabric() {
    const std::string name = "test-" + std::to_string(owner_) + "-0";
    const softnic::FabricSpec spec = wanted_fabric();
    auto held = softnic::Holder::hold(name, &spec);
    if (!held) throw MustError(held.error().text);
    holder_ = new softnic::Holder(std::move(held).value());
    dir_ = holder_->fabric().dir();
    facts_ = facts_of(spec);
    setenv("SOFTNIC_FABRIC", name.c_str(), 1);
    set_default("BEELINE_IBVERBS_LIB", BL_SOFTNIC_VERBS);
  }

  void use_devices(const std::vector<std::string>& devices) {
    std::string made = "/dev/shm/beeline-test-XXXXXX";
    if (mkdtemp(made.data()) == nullptr) throw MustError("cannot make " + made);
    dir_ = made;
    facts_ = {.speed_mbits = {}, .has_pci_paths = false, .devices = devices, .gpus = {}};
    set_default("NCCL_IB_HCA", "=" + devices[0] + "," + devices[1]);
  }

  const pid_t owner_;
  softnic::Holder* holder_ = nullptr;  // none with real devices
  std::string dir_;                    // the fabric's, or one for the plugin's pages
  FabricFacts facts_{};
};

void must_not_leak() {
#if defined(__SANITIZE_ADDRESS__)
  if (__lsan_do_recoverable_leak_check() != 0) throw MustError("memory leaked");
#endif
}

// Runs the body, and adds the plugin's log to the reason if it throws.
void with_log(const std::function<void()>& body) {
  try {
    body();
    must_not_leak();
  } catch (const std::exception& error) {
    throw MustError(std::string(error.what()) + "\nThe plugin's log:\n" + log_text());
  }
}

std::string host_of(size_t rank) { return rank % 2 == 0 ? "h0" : "h1"; }

PeerBody on_host(const std::string& host, const PeerBody& body) {
  return [host, body](Peer& peer) {
    enter_host(host);
    with_log([&] { body(peer); });
  };
}

// Asked in another process, since this one must not load the plugin.
bool is_exported_elsewhere(Abi abi) {
  try {
    run_alone([abi] { BL_MUST(is_exported(abi)); });
    return true;
  } catch (const MustError&) {
    return false;
  }
}

// Longer than the waits of a body, so that a body's own timeout comes first and says what it waited
// for.
constexpr auto kOuterPatience = 4 * kPatience;

}  // namespace

const FabricFacts& fabric_facts() { return World::get().facts(); }

bool is_slow() { return kSlowed || !real_devices().empty(); }

bool has_warned(const std::vector<std::string>& parts) {
  return !kProcessesWork || log_has(NCCL_LOG_WARN, parts);
}

void enter_host(const std::string& host) {
  for (const auto& [name, value] : World::get().environment_on(host)) {
    setenv(name, value.c_str(), 1);
  }
}

void disturb(const std::string& target, const std::string& command) {
  const softnic::Fabric& fabric = World::get().fabric();
  const auto order = softnic::read_targeted_command(fabric, target, command);
  if (!order) throw MustError(order.error().text);
  softnic::apply(fabric, *order);
}

Variable::Variable(const char* name, const char* value)
    : name_(name), was_set_(std::getenv(name) != nullptr) {
  if (was_set_) before_ = std::getenv(name);
  if (value == nullptr) {
    unsetenv(name);
  } else {
    setenv(name, value, 1);
  }
}

Variable::~Variable() {
  if (was_set_) {
    setenv(name_, before_.c_str(), 1);
  } else {
    unsetenv(name_);
  }
}

UndoneFaults::~UndoneFaults() {
  try {
    disturb(target_, "return");
    disturb(target_, "reset");
  } catch (const std::exception& error) {  // there is no such NIC
    std::fprintf(stderr, "the faults of %s stay: %s\n", target_.c_str(), error.what());
    std::abort();
  }
}

void hide_gpu_writes(bool hide) { World::get().fabric().header().hazards.hide.store(hide ? 1 : 0); }

size_t registered_regions() {
  if (!real_devices().empty()) return 0;
  const softnic::Fabric& fabric = World::get().fabric();
  const auto pid = static_cast<uint32_t>(getpid());
  for (uint32_t slot = 0; slot < softnic::kMaxSlots; ++slot) {
    if (fabric.header().slots[slot].pid.load() != pid) continue;
    const UniqueFd file = fabric.files().open_file("arena." + std::to_string(slot), 0);
    const softnic::Mapping mapping = softnic::Mapping::of_file(file.get(), softnic::kArenaBytes);
    if (!mapping) continue;
    const softnic::Arena arena(mapping.base());
    size_t count = 0;
    for (uint32_t i = 0; i < softnic::kMaxMrs; ++i) count += arena.mr(i).key.load() != 0 ? 1 : 0;
    return count;
  }
  return 0;
}

std::vector<std::string> host_environment(const std::string& host) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : World::get().environment_on(host)) {
    lines.push_back(std::string(name) + "=" + value);
  }
  return lines;
}

std::ostream& operator<<(std::ostream& out, Abi abi) { return out << "v" << static_cast<int>(abi); }

std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.abi << (way.mode == PeerMode::kThreads ? " in threads" : " in processes");
}

std::vector<Abi> every_abi() {
  static const std::vector<Abi> found = [] {
    std::vector<Abi> all = {Abi::kV6,  Abi::kV7,  Abi::kV8, Abi::kV9,
                            Abi::kV10, Abi::kV11, Abi::kV12};
    std::erase_if(all, [](Abi abi) { return !is_exported_elsewhere(abi); });
    return all;
  }();
  return found;
}

std::vector<Abi> some_abis() { return {Abi::kV8, Abi::kV12}; }

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const PeerMode mode : peer_modes()) all.push_back({kNewest, mode});
  return all;
}

void run_alone(const std::function<void()>& body) {
  World::get();
  if (!kProcessesWork) {
    enter_host("h0");
    clear_log();
    with_log(body);
    return;
  }
  run_peers(PeerMode::kProcesses, {on_host("h0", [&](Peer&) { body(); })}, kOuterPatience);
}

int wait_for_exit(pid_t child) {
  int status = 0;
  try {
    wait_until([&] { return waitpid(child, &status, WNOHANG) == child; }, "the child to end");
  } catch (const MustError&) {
    kill(child, SIGKILL);
    throw;
  }
  BL_MUST(WIFEXITED(status));
  return WEXITSTATUS(status);
}

void run_two(PeerMode mode, const PeerBody& first, const PeerBody& second) {
  World::get();
  if (mode == PeerMode::kThreads) {
    run_alone([&] { run_peers(PeerMode::kThreads, {first, second}); });
    return;
  }
  run_processes({first, second});
}

void run_processes(const std::vector<PeerBody>& bodies) {
  World::get();
  std::vector<PeerBody> placed;
  for (size_t rank = 0; rank < bodies.size(); ++rank) {
    placed.push_back(on_host(host_of(rank), bodies[rank]));
  }
  run_peers(PeerMode::kProcesses, placed, kOuterPatience);
}

}  // namespace beeline::test
