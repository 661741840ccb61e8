// SPDX-License-Identifier: Apache-2.0
//
// Loading the plugin with and without a verbs library, devices or a GPU driver, and with settings
// in the environment.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "tests/plugin/contract/levels.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/plugin/contract/session.h"
#include "tests/plugin/contract/world.h"
#include "tests/support/catch.h"
#include "tests/support/launch.h"

using namespace beeline::test;

namespace {

struct Setting {
  const char* name;
  std::string value;
};

// Runs the body in a process that has these variables from the start.
void run_with(const std::vector<Setting>& settings, const std::function<void()>& body) {
  run_alone([&] {
    for (const Setting& setting : settings) setenv(setting.name, setting.value.c_str(), 1);
    body();
  });
}

std::vector<std::string> device_names(const Session& session) {
  std::vector<std::string> names(static_cast<size_t>(session.devices()));
  for (size_t dev = 0; dev < names.size(); ++dev) {
    names[dev] = session.properties(static_cast<int>(dev)).name;
  }
  return names;
}

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

using Names = std::vector<std::string>;

// Replaces $0 and $1 by the names of the two devices, and $* by their common prefix.
std::string spell(std::string text) {
  const Names& devices = fabric_facts().devices;
  BL_MUST(devices.size() == 2);
  const auto both =
      std::mismatch(devices[0].begin(), devices[0].end(), devices[1].begin(), devices[1].end());
  const std::string common(devices[0].begin(), both.first);
  const std::pair<const char*, std::string> words[] = {
      {"$0", devices[0]}, {"$1", devices[1]}, {"$*", common}};
  for (const auto& [mark, word] : words) {
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) text.replace(at, 2, word);
  }
  return text;
}

// The one warning that there is.
std::string only_warning() {
  const std::vector<std::string> lines = find_log_lines(NCCL_LOG_WARN);
  BL_MUST(lines.size() == 1);
  return lines[0];
}

}  // namespace

// Each of these tests changes the environment, so each needs a process of its own.
#define SKIP_WITHOUT_PROCESSES() \
  if (!kProcessesWork) return

// Not with real devices: there the plugin would load the system's library instead.
TEST_CASE("load: without a verbs library there are no devices, and one line says why",
          "[contract][load][softnic]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_with({{"BEELINE_IBVERBS_LIB", "/nonexistent/libibverbs.so"}}, [&] {
    const Session session(abi);
    BL_MUST(session.devices() == 0);
    const std::string line = only_warning();
    BL_MUST(line.find("/nonexistent/libibverbs.so") != std::string::npos);
    const Session again(abi);
    BL_MUST(again.devices() == 0);
    only_warning();
  });
}

TEST_CASE("load: a file that is no verbs library counts as none", "[contract][load][softnic]") {
  SKIP_WITHOUT_PROCESSES();
  const std::string file = GENERATE(as<std::string>(), "/etc/passwd", "libm.so.6");
  CAPTURE(file);
  run_with({{"BEELINE_IBVERBS_LIB", file}}, [&] {
    const Session session;
    BL_MUST(session.devices() == 0);
    BL_MUST(only_warning().find(file) != std::string::npos);
  });
}

// Not with real devices, which cannot be taken away.
TEST_CASE("load: without a device there are 0 devices, and a line says so",
          "[contract][load][softnic]") {
  SKIP_WITHOUT_PROCESSES();
  run_alone([&] {
    enter_host(kBareHost);
    const Session session;
    BL_MUST(session.devices() == 0);
    BL_MUST(log_has(NCCL_LOG_INFO, {"device"}) || log_has(NCCL_LOG_WARN, {"device"}));
  });
}

TEST_CASE("load: an NCCL that may forget the plugin is told how to keep it", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(every_abi()));
  const std::string kept = GENERATE(as<std::string>{}, "0", "1");
  CAPTURE(abi, kept);
  run_with({{"NCCL_NET_PLUGIN_REF_COUNT", kept}}, [&] {
    const Session session(abi);
    const Session again(abi);
    const bool may_forget = abi == Abi::kV10 || abi == Abi::kV11;
    const size_t wanted = may_forget && kept == "0" ? 1 : 0;
    BL_MUST(find_log_lines(NCCL_LOG_WARN, {"NCCL_NET_PLUGIN_REF_COUNT=1"}).size() == wanted);
  });
}

TEST_CASE("load: the filter of devices is NCCL's, and one that lets nothing through is named",
          "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const auto [pattern, wanted] = GENERATE(table<std::string, Names>(
      {{"^$0", {"$1"}}, {"$*", {"$0", "$1"}}, {"$0:1,$1:2", {"$0"}}, {"^$0,$1", {}}}));
  const std::string filter = spell(pattern);
  CAPTURE(filter);
  run_with({{"NCCL_IB_HCA", filter}}, [&, &names = wanted] {
    const Session session;
    Names full;
    for (const std::string& name : names) full.push_back("beeline_" + spell(name));
    BL_MUST(device_names(session) == full);
    BL_MUST(log_has(NCCL_LOG_WARN, {filter}) == full.empty());
    if (!full.empty()) link_to_self(session);
  });
}

TEST_CASE("load: a setting that cannot be used as it is has a line in the log",
          "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const auto [name, value, words] = GENERATE(table<const char*, std::string, std::string>({
      {"BEELINE_HAC", "x", "BEELINE_HCA"},  // unknown, with the nearest known one
      {"NCCL_IB_TIMEOUT", "soon", "NCCL_IB_TIMEOUT"},
      {"NCCL_IB_TC", "26", "export NCCL_IB_TC=104"},  // with the command that mends it
  }));
  CAPTURE(name);
  run_with({{name, value}}, [&, &name = name, &words = words] {
    const Session session;
    const Session again;
    const std::string line = only_warning();
    BL_MUST(line.find(name) != std::string::npos && times(line, words) >= 1);
    BL_MUST(session.devices() == 2);
    link_to_self(session);
  });
}

TEST_CASE("load: variables of NCCL's that have no effect here have a line in the log",
          "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  run_with({{"NCCL_IB_DATA_DIRECT", "1"}, {"NCCL_IB_TC", "104"}}, [&] {
    const Session session;
    const Session again;
    const std::vector<std::string> lines = find_log_lines(NCCL_LOG_INFO, {"without effect here"});
    BL_MUST(lines.size() == 1);
    BL_MUST(times(lines[0], "NCCL_IB_DATA_DIRECT") == 1 && times(lines[0], "NCCL_IB_TC") == 0);
    BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
  });
}

TEST_CASE("load: the use of RDMA may be turned off", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  run_with({{"NCCL_IB_DISABLE", "1"}}, [&] {
    const Session session;
    BL_MUST(session.devices() == 0);
    BL_MUST(log_has(NCCL_LOG_INFO, {"IB_DISABLE"}) || log_has(NCCL_LOG_WARN, {"IB_DISABLE"}));
  });
}

TEST_CASE("load: without a GPU's driver, one line says so", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  run_alone([&] {
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr) return;
    const Session session;
    const Session again;
    BL_MUST((session.properties(0).ptr_support & NCCL_PTR_CUDA) == 0);
    BL_MUST(find_log_lines(NCCL_LOG_INFO, {"libcuda"}).size() == 1);
    BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
  });
}

TEST_CASE("load: with valid settings there is no warning, and the log names every device",
          "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    link_to_self(session);
    BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
    for (const std::string& device : fabric_facts().devices) {
      BL_MUST(log_has(NCCL_LOG_INFO, {device}));
    }
  });
}

TEST_CASE("load: the plugin prints nothing except through the logger", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  run_alone([&] {
    const beeline::UniqueFd out(memfd_create("stdout", 0));
    const int saved_out = dup(STDOUT_FILENO);
    const int saved_err = dup(STDERR_FILENO);
    dup2(out.get(), STDOUT_FILENO);
    dup2(out.get(), STDERR_FILENO);
    {
      setenv("BEELINE_HAC", "x", 1);
      const std::unique_ptr<Net> net = Net::load(kNewest);
      void* context = nullptr;
      BL_MUST_SUCCEED(net->init(&context, nullptr, nullptr));
      const Session session;
      link_to_self(session);
    }
    std::fflush(nullptr);
    dup2(saved_out, STDOUT_FILENO);
    dup2(saved_err, STDERR_FILENO);
    BL_MUST(lseek(out.get(), 0, SEEK_END) == 0);
  });
}

TEST_CASE("load: a program in plain C can use it, through every version of its table",
          "[contract][load]") {
  const FabricFacts& facts = fabric_facts();  // also sets the environment
  const beeline::UniqueFd out(memfd_create("stdout", MFD_CLOEXEC));
  Child child({.words = {BL_C_CALLER, std::getenv("BL_TEST_PLUGIN")},
               .environment = host_environment("h0"),
               .descriptors = {{out.get(), STDOUT_FILENO}}});
  const std::string page = "beeline-" + std::to_string(child.pid()) + "-";
  const Ending ending = child.wait();
  for (const auto& file : std::filesystem::directory_iterator(std::getenv("BEELINE_STATS_DIR"))) {
    CHECK_FALSE(file.path().filename().string().starts_with(page));
  }
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(pread(out.get(), text.data(), 4096, 0), 0)));
  CAPTURE(text, ending.said);
  CHECK(ending.is_good());
  for (const std::string& device : facts.devices) CHECK(times(text, "beeline_" + device) == 7);
  for (int version = 6; version <= 12; ++version) {
    CHECK(times(text, "v" + std::to_string(version) + " moved 1000 bytes") == 1);
  }
}

TEST_CASE("load: a missing folder causes a warning, and the plugin works without it",
          "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  run_alone([] {
    setenv("BEELINE_STATS_DIR", "/nope", 1);
    setenv("BEELINE_SYSFS_ROOT", "/nope/either", 1);
    const Session session(Abi::kV12);
    must_carry(session.net(), link_to_self(session), 1);
    BL_MUST(log_has(NCCL_LOG_WARN, {"BEELINE_STATS_DIR=/nope cannot be used"}));
    BL_MUST(log_has(NCCL_LOG_WARN, {"BEELINE_SYSFS_ROOT=/nope/either cannot be used"}));
  });
}

// An NCCL that forgets the plugin after its last communicator loads it again later.
TEST_CASE("load: the library may be closed and loaded again, and nothing stays open",
          "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  constexpr uint32_t kLives = 16;
  run_alone([&] {
    Levels level{};
    for (uint32_t life = 0; life < kLives; ++life) {
      {
        const Session session;
        must_carry(session.net(), link_to_self(session), life);
      }
      // One dlclose for this dlopen, and one for the session's.
      void* const library = dlopen(std::getenv("BL_TEST_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
      BL_MUST(library != nullptr);
      BL_MUST(dlclose(library) == 0 && dlclose(library) == 0);
      if (life == 0) level = levels();
    }
    must_return_to(level);
  });
}
