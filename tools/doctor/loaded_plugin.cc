// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/loaded_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/clock.h"
#include "plugin/checks/words.h"
#include "tools/nccl/loader.h"
#include "tools/nccl/own_plugin.h"
#include "tools/ranks/process.h"

namespace beeline::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultName = "libnccl-net.so";  // if NCCL_NET_PLUGIN is not set
constexpr const char* kNoPlugin = "none";
constexpr int kPatienceSeconds = 10;  // a plugin may be on a network file system

bool has_equal_bytes(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  if (fs::file_size(a, error) != fs::file_size(b, error) || error) return false;
  std::ifstream first(a, std::ios::binary);
  std::ifstream second(b, std::ios::binary);
  using Bytes = std::istreambuf_iterator<char>;
  return std::equal(Bytes(first), Bytes(), Bytes(second), Bytes());
}

checks::PluginTry load(const std::string& name, const fs::path& own) {
  checks::PluginTry one{.name = name};
  const Outcome<nccl::Net> net = nccl::load_plugin(name, 0);
  if (!net) {
    one.error = net.error().text;
    return one;
  }
  one.net = net->calls.name;
  Dl_info info = {};
  one.file = ::dladdr(net->table, &info) != 0 ? info.dli_fname : net->file;
  one.is_other = !own.empty() && !has_equal_bytes(own, one.file);
  return one;
}

// In a child process: a constructor may abort or hang.
checks::PluginTry load_apart(const std::string& name, const fs::path& own) {
  checks::PluginTry failed{.name = name};
  Outcome<ranks::Process> forked = ranks::fork_process(name);
  if (!forked) {
    failed.error = forked.error().text;
    return failed;
  }
  auto& [stream, child] = *forked;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)stream.send(checks::to_text({.tries = {load(name, own)}}, true));
    ::_exit(0);
  }
  const std::int64_t deadline = now_ns() + kPatienceSeconds * kNsPerSec;
  std::string text;
  Outcome<std::string> line = stream.receive(deadline);
  for (; line; line = stream.receive(deadline)) text += *line + "\n";
  const bool is_late = line.error().code == Errc::kTimeout;
  if (is_late) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const auto view = checks::parse_plugins(is_late ? "" : text);
  if (view && view->tries.size() == 1) return view->tries.front();
  failed.error = fmt::format("cannot load the plugin {}: it {}", name,
                             is_late ? fmt::format("did not return within {} s", kPatienceSeconds)
                                     : ranks::death_of(status, "ended its process"));
  return failed;
}

}  // namespace

checks::PluginView load_plugins(const Environ& environ) {
  checks::PluginView view;
  fs::path own;
  if (const auto folder = nccl::own_plugin_folder()) {
    view.own_folder = folder->string();
    view.is_searched = nccl::is_always_searched(*folder);
    own = *folder / nccl::kOwnPluginFile;
  }
  for (const std::string& name :
       checks::split(environ.get("NCCL_NET_PLUGIN").value_or(kDefaultName), ",")) {
    if (name != kNoPlugin) view.tries.push_back(load_apart(name, own));
  }
  return view;
}

}  // namespace beeline::doctor
