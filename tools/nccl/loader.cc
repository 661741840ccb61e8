// SPDX-License-Identifier: Apache-2.0
#include "tools/nccl/loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "tools/nccl/own_plugin.h"

namespace beeline::nccl {
namespace {

std::string default_plugin() {
  const Outcome<std::filesystem::path> folder = own_plugin_folder();
  return folder ? (*folder / kOwnPluginFile).string() : kOwnPluginFile;
}

struct Library {
  void* handle;
  std::string file;
};

Outcome<Library> open_library(const std::string& plugin) {
  std::vector<std::string> reasons;
  const auto attempt = [&](const std::string& file) -> void* {
    void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
    const std::string reason = ::dlerror();
    const bool is_named = reason.starts_with(plugin + ": ");  // as below
    reasons.push_back(is_named ? reason.substr(plugin.size() + 2) : reason);
    return nullptr;
  };
  if (void* const handle = attempt(plugin)) return Library{handle, plugin};
  const bool is_path = plugin.find('/') != std::string::npos;
  const bool is_file = plugin.starts_with("lib") && plugin.ends_with(".so");
  if (!is_path && !is_file) {
    const std::string file = "libnccl-net-" + plugin + ".so";
    if (void* const handle = attempt(file)) return Library{handle, file};
  }
  return fail(fmt::format("cannot load the plugin {}: {}{}", plugin, fmt::join(reasons, "; "),
                          is_path ? "" : ". Name the file with its folder"));
}

std::vector<int> exported_versions(void* library) {
  std::vector<int> versions;
  for (int abi = kNewestAbi; abi >= kOldestAbi; --abi) {
    if (::dlsym(library, table_symbol(abi).c_str()) != nullptr) versions.push_back(abi);
  }
  return versions;
}

}  // namespace

Outcome<Net> load_plugin(const std::string& plugin, int abi) {
  const Library library = BL_TRY(open_library(plugin.empty() ? default_plugin() : plugin));
  const std::vector<int> versions = exported_versions(library.handle);
  if (versions.empty()) {
    return fail(fmt::format("{} is not a network plugin: it exports none of {} to {}", library.file,
                            table_symbol(kOldestAbi), table_symbol(kNewestAbi)));
  }
  const int chosen = abi == 0 ? versions.front() : abi;
  const void* const table = ::dlsym(library.handle, table_symbol(chosen).c_str());
  if (table == nullptr) {
    return fail(fmt::format("{} has no {}; it exports v{}: choose one with --abi", library.file,
                            table_symbol(chosen), fmt::join(versions, ", v")));
  }
  Net net;
  net.calls = adapt_table(chosen, table);
  net.abi = chosen;
  net.table = table;
  net.file = library.file;
  return net;
}

}  // namespace beeline::nccl
