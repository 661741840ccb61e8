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

#include "tests/contract/plugin_log.h"
#include "tests/contract/session.h"
#include "tests/contract/world.h"
#include "tests/support/catch.h"
#include "tests/support/launch.h"

using namespace beeline::test;

namespace {

struct Variable {
  const char* name;
  std::string value;
};

// Runs the body in a process that has these variables from the start.
void run_with(const std::vector<Variable>& variables, const std::function<void()>& body) {
  run_alone([&] {
    for (const Variable& variable : variables) setenv(variable.name, variable.value.c_str(), 1);
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
  const Abi abi = GENERATE(from_range(main_abis()));
  const std::string file = GENERATE(as<std::string>(), "/etc/passwd", "libm.so.6");
  CAPTURE(abi, file);
  run_with({{"BEELINE_IBVERBS_LIB", file}}, [&] {
    const Session session(abi);
    BL_MUST(session.devices() == 0);
    BL_MUST(only_warning().find(file) != std::string::npos);
  });
}

// Not with real devices, which cannot be taken away.
TEST_CASE("load: without a device there are 0 devices, and a line says so",
          "[contract][load][softnic]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    enter_host(kBareHost);
    const Session session(abi);
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

TEST_CASE("load: a filter that lets nothing through is named", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with({{"NCCL_IB_HCA", "mlx9_7"}}, [&] {
    const Session session(abi);
    BL_MUST(session.devices() == 0);
    BL_MUST(log_has(NCCL_LOG_WARN, {"mlx9_7"}));
  });
}

TEST_CASE("load: the filter of devices is NCCL's", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  const auto [pattern, wanted] = GENERATE(table<std::string, Names>({
      {"^$0", {"$1"}},
      {"$1", {"$1"}},
      {"=$0", {"$0"}},
      {"$*", {"$0", "$1"}},
      {"$0:1,$1:1", {"$0", "$1"}},
      {"$0:1,$1:2", {"$0"}},
      {"^$0,$1", {}},
  }));
  const std::string filter = spell(pattern);
  CAPTURE(abi, filter);
  run_with({{"NCCL_IB_HCA", filter}}, [&, &names = wanted] {
    Names full;
    for (const std::string& name : names) full.push_back("beeline_" + spell(name));
    BL_MUST(device_names(Session(abi)) == full);
  });
}

TEST_CASE("load: the last device may be chosen, and carries data", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with({{"NCCL_IB_HCA", spell("^$0")}}, [&] {
    const Session session(abi);
    BL_MUST(session.devices() == 1);
    link_to_self(session);
    Properties found{};
    BL_MUST(session.net().properties(1, 0, &found) != ncclSuccess);
  });
}

TEST_CASE("load: the use of RDMA may be turned off", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with({{"NCCL_IB_DISABLE", "1"}}, [&] {
    const Session session(abi);
    BL_MUST(session.devices() == 0);
    BL_MUST(log_has(NCCL_LOG_INFO, {"IB_DISABLE"}) || log_has(NCCL_LOG_WARN, {"IB_DISABLE"}));
  });
}

TEST_CASE("load: without a GPU's driver, one line says so", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr) return;
    const Session session(abi);
    const Session again(abi);
    BL_MUST((session.properties(0).ptr_support & NCCL_PTR_CUDA) == 0);
    BL_MUST(find_log_lines(NCCL_LOG_INFO, {"libcuda"}).size() == 1);
    BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
  });
}

TEST_CASE("load: an unknown variable is named, with the nearest known one", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with({{"BEELINE_HAC", "x"}}, [&] {
    const Session session(abi);
    const Session again(abi);
    const std::string line = only_warning();
    BL_MUST(line.find("BEELINE_HAC") != std::string::npos);
    BL_MUST(times(line, "BEELINE_HCA") == 1);
    BL_MUST(session.devices() == 2);
  });
}

TEST_CASE("load: an invalid value is named, and the default is used", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with({{"NCCL_IB_TIMEOUT", "soon"}}, [&] {
    const Session session(abi);
    BL_MUST(only_warning().find("NCCL_IB_TIMEOUT") != std::string::npos);
    link_to_self(session);
  });
}

TEST_CASE("load: what is wrong with the host is named, with the command that mends it",
          "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with({{"NCCL_IB_TC", "26"}}, [&] {
    const Session session(abi);
    BL_MUST(only_warning().find("export NCCL_IB_TC=104") != std::string::npos);
    link_to_self(session);
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
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const beeline::UniqueFd out(memfd_create("stdout", 0));
    const int saved_out = dup(STDOUT_FILENO);
    const int saved_err = dup(STDERR_FILENO);
    dup2(out.get(), STDOUT_FILENO);
    dup2(out.get(), STDERR_FILENO);
    {
      setenv("BEELINE_HAC", "x", 1);
      const std::unique_ptr<Net> net = Net::load(abi);
      void* context = nullptr;
      BL_MUST_SUCCEED(net->init(&context, nullptr, nullptr));
      const Session session(abi);
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

TEST_CASE("load: a process that was killed leaves its statistics page", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  run_processes(
      {[](Peer& peer) {
         const Session session(Abi::kV12);
         peer.send(1, getpid());
         peer.meet();
       },
       [](Peer& peer) {
         const std::string page = "beeline-" + std::to_string(peer.receive<pid_t>(0)) + "-";
         peer.kill(0);
         const std::filesystem::directory_iterator files(std::getenv("BEELINE_STATS_DIR"));
         BL_MUST(std::any_of(begin(files), end(files), [&](const auto& file) {
           return file.path().filename().string().starts_with(page);
         }));
       }});
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

TEST_CASE("load: the library may be closed and loaded again", "[contract][load]") {
  SKIP_WITHOUT_PROCESSES();
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    for (uint32_t life = 0; life < 3; ++life) {
      {
        const Session session(abi);
        must_carry(session.net(), link_to_self(session), life);
      }
      // One dlclose for this dlopen, and one for the session's.
      void* const library = dlopen(std::getenv("BL_TEST_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
      BL_MUST(library != nullptr);
      BL_MUST(dlclose(library) == 0 && dlclose(library) == 0);
    }
  });
}
