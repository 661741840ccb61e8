// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/loaded_plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "plugin/checks/words.h"
#include "tools/nccl/loader.h"
#include "tools/nccl/own_plugin.h"

namespace beeline::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultName = "libnccl-net.so";  // if NCCL_NET_PLUGIN is not set
constexpr const char* kNoPlugin = "none";

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
    if (name != kNoPlugin) view.tries.push_back(load(name, own));
  }
  return view;
}

}  // namespace beeline::doctor
