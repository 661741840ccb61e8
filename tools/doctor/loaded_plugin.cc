// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/loaded_plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "common/base/fd.h"
#include "plugin/checks/words.h"
#include "tools/nccl/loader.h"
#include "tools/nccl/own_plugin.h"

namespace beeline::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultName = "libnccl-net.so";  // if NCCL_NET_PLUGIN is not set
constexpr const char* kNoPlugin = "none";
constexpr std::chrono::seconds kPatience{10};  // a plugin may be on a network file system

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

// Until the end of the file, or for so long. Empty: not read to its end.
std::optional<std::string> read_all(const UniqueFd& fd) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (std::string text;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd poll = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? ::poll(&poll, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    std::array<char, 4096> part{};
    const ssize_t size = ::read(fd.get(), part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
}

void write_all(const UniqueFd& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd.get(), text.data(), text.size());
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

// How a process ended that has not said what it loaded.
std::string end_of(bool is_late, int status) {
  if (is_late) return fmt::format("did not return within {} s", kPatience.count());
  if (!WIFSIGNALED(status))
    return fmt::format("ended its process with status {}", WEXITSTATUS(status));
  return fmt::format("died of signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

// In a child process: a constructor may abort or hang.
checks::PluginTry load_apart(const std::string& name, const fs::path& own) {
  checks::PluginTry failed{.name = name};
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    failed.error = fmt::format("cannot make a pipe: {}", std::strerror(errno));
    return failed;
  }
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    failed.error = fmt::format("cannot start a process: {}", std::strerror(errno));
    return failed;
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    write_all(to, checks::to_text({.tries = {load(name, own)}}, true));
    ::_exit(0);
  }
  to.reset();
  const std::optional<std::string> text = read_all(from);
  if (!text) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const auto view = checks::parse_plugins(text.value_or(""));
  if (view && view->tries.size() == 1) return view->tries.front();
  failed.error = fmt::format("cannot load the plugin {}: it {}", name, end_of(!text, status));
  return failed;
}

}  // namespace

checks::PluginView load_plugins(const Environ& environ) {
  checks::PluginView view;
  fs::path own;
  if (const auto folder = nccl::own_plugin_folder()) {
    view.own_folder = folder->string();
    own = *folder / nccl::kOwnPluginFile;
  }
  for (const std::string& name :
       checks::split(environ.get("NCCL_NET_PLUGIN").value_or(kDefaultName), ",")) {
    if (name != kNoPlugin) view.tries.push_back(load_apart(name, own));
  }
  return view;
}

}  // namespace beeline::doctor
