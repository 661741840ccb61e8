// SPDX-License-Identifier: Apache-2.0
//
// A process that creates and destroys communicators one after another, with the plugin list of NCCL
// 2.27.3 to 2.29.7, which forgets an unused plugin.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "tests/contract/flow.h"
#include "tests/contract/levels.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

// Descriptors of the first life may still be closing. A leak in each life would be many more.
constexpr uint32_t kLives = 16;

// NCCL's list of plugins: the last communicator that ends removes the library's name.
// NCCL_NET_PLUGIN_REF_COUNT is the initial reference count.
class ForgetfulNccl {
 public:
  ForgetfulNccl() : name_(variable("BL_TEST_PLUGIN")) {
    users_ = std::atoi(variable("NCCL_NET_PLUGIN_REF_COUNT").c_str());
  }

  // Returns false if no plugin is left, and NCCL uses another network.
  bool begin_communicator() {
    if (name_.empty()) return false;
    if (library_ == nullptr) library_ = dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL);
    BL_MUST(library_ != nullptr);
    ++users_;
    return true;
  }

  void end_communicator() {
    if (--users_ > 0) return;
    BL_MUST(dlclose(library_) == 0);
    library_ = nullptr;
    name_.clear();
  }

 private:
  static std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  }

  std::string name_;
  void* library_ = nullptr;
  int users_ = 0;
};

std::vector<std::string> warnings_of_forgetting() {
  return find_log_lines(NCCL_LOG_WARN, {"NCCL_NET_PLUGIN_REF_COUNT=1"});
}

}  // namespace

// v10 and v11 are the tables that these versions of NCCL use.
TEST_CASE("load: before an NCCL forgets the plugin, the log has said how to keep it",
          "[contract][load]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(Abi::kV10, Abi::kV11);
  const bool is_kept = GENERATE(false, true);
  CAPTURE(abi, is_kept);
  run_alone([&] {
    setenv("NCCL_NET_PLUGIN_REF_COUNT", is_kept ? "1" : "0", 1);
    ForgetfulNccl nccl;
    uint32_t lives = 0;
    Levels level{};
    while (lives < kLives && nccl.begin_communicator()) {
      {
        const Session session(abi);
        must_carry(session.net(), link_to_self(session), lives);
      }
      nccl.end_communicator();
      if (lives++ == 0) level = levels();
    }
    must_return_to(level);
    BL_MUST(lives == (is_kept ? kLives : 1));
    BL_MUST(warnings_of_forgetting().size() == (is_kept ? 0 : 1));
    BL_MUST(find_log_lines(NCCL_LOG_WARN).size() == warnings_of_forgetting().size());
  });
}
