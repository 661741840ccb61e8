// SPDX-License-Identifier: Apache-2.0
// `softnic run`. A program that links libibverbs gets softnic's verbs by LD_PRELOAD. One that loads
// it by dlopen gets them by LD_LIBRARY_PATH, from a folder that has only libibverbs.so. softgpu has
// such a folder, too.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "common/base/fd.h"
#include "softnic/cli/child.h"
#include "softnic/cli/common.h"
#include "softnic/cli/subcommands.h"
#include "softnic/fabric/fabric.h"
#include "softnic/spec/names.h"
#include "softnic/spec/spec_toml.h"

namespace softnic::cli {
namespace {

using beeline::fail;

std::string own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

// Tells how to build a missing library, which is possible only in a build folder.
std::string how_to_build(const std::string& target) {
  const std::filesystem::path build = std::filesystem::path(own_folder()).parent_path();
  std::error_code error;
  if (!std::filesystem::exists(build / "build.ninja", error))
    return "use the softnic of a build folder, which can build it";
  return fmt::format("build it with: ninja -C {} {}", build.string(), target);
}

beeline::Outcome<std::string> find_library() {
  std::error_code error;
  const std::string path = env_or("SOFTNIC_LIB", own_folder() + "/lib/libibverbs.so");
  if (::access(path.c_str(), R_OK) != 0)
    return fail(fmt::format("the verbs library is not at {}: {}, or set SOFTNIC_LIB", path,
                            how_to_build("softnic/lib/libibverbs.so")));
  const std::string absolute = std::filesystem::absolute(path, error);
  if (absolute.find_first_of(": ") != std::string::npos)
    return fail(fmt::format("the dynamic linker cannot preload {}: its path has a space or colon",
                            absolute));
  return absolute;
}

// The folder of softgpu, or an empty string if it is not wanted.
beeline::Outcome<std::string> find_softgpu(bool is_wanted) {
  if (!is_wanted) return std::string();
  const std::string folder = own_folder() + "/gpu/lib";
  if (::access((folder + "/libcuda.so.1").c_str(), R_OK) != 0)
    return fail(fmt::format("there is no libcuda.so.1 in {}: {}", folder,
                            how_to_build("softnic/gpu/lib/libcuda.so.1")));
  return folder;
}

beeline::Outcome<Holder> hold_fabric(const std::string& name, const std::string& file) {
  if (file.empty()) return Holder::hold(name, nullptr);
  const FabricSpec spec = BL_TRY(read_fabric_file(file));
  return Holder::hold(name, &spec);
}

beeline::Outcome<std::string> choose_host(const Fabric& fabric, const std::string& option) {
  const FabricHeader& header = fabric.header();
  const std::string wanted = option.empty() ? env_or("SOFTNIC_HOST", header.hosts[0].name) : option;
  if (fabric.find_host(wanted)) return wanted;
  std::vector<std::string> names;
  for (std::uint32_t h = 0; h < header.host_count; ++h) names.emplace_back(header.hosts[h].name);
  return fail(fmt::format("no host \"{}\"{} in fabric {}; its hosts are {}", wanted,
                          option.empty() ? " (from SOFTNIC_HOST)" : "", fabric.name(),
                          list_text(names)));
}

// Puts `entry` in front of a list in the environment, unless it is there already.
void prepend(const char* variable, const std::string& entry) {
  const std::string old = env_or(variable, "");
  if (old == entry || old.starts_with(entry + ":")) return;
  ::setenv(variable, (old.empty() ? entry : entry + ":" + old).c_str(), 1);
}

void set_environment(const Fabric& fabric, const std::string& host, const std::string& library) {
  ::setenv("SOFTNIC_FABRIC", fabric.name().c_str(), 1);
  ::setenv("SOFTNIC_HOST", host.c_str(), 1);
  ::setenv("BEELINE_SYSFS_ROOT", fabric.sysfs_root(host).c_str(), 1);
  ::setenv("BEELINE_IBVERBS_LIB", library.c_str(), 1);
  ::setenv("NCCL_IBVERBS_LIB", library.c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  prepend("LD_PRELOAD", library);
  prepend("LD_LIBRARY_PATH", std::filesystem::path(library).parent_path());
}

// Opens the file for the log. This is done before the command runs, so that errors are reported
// early.
beeline::Outcome<beeline::UniqueFd> open_log_file(const std::string& path) {
  if (path.empty()) return beeline::UniqueFd();
  beeline::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return fail(fmt::format("cannot write the log to {}: {}", path, std::strerror(errno)));
  return file;
}

}  // namespace

int run(const RunOptions& options) {
  const beeline::Outcome<std::string> library = find_library();
  if (!library) return report_error(library.error().text);
  const beeline::Outcome<std::string> softgpu = find_softgpu(options.softgpu);
  if (!softgpu) return report_error(softgpu.error().text);
  const beeline::Outcome<Holder> holder =
      hold_fabric(fabric_name(options.name), options.fabric_file);
  if (!holder) return report_error(holder.error().text);
  const Fabric& fabric = holder->fabric();
  const beeline::Outcome<std::string> host = choose_host(fabric, options.host);
  if (!host) return report_error(host.error().text);
  const beeline::Outcome<beeline::UniqueFd> log_file = open_log_file(options.log_file);
  if (!log_file) return report_error(log_file.error().text);
  const int status = run_child(options.command, [&] {
    if (!softgpu->empty()) prepend("LD_LIBRARY_PATH", *softgpu);
    set_environment(fabric, *host, *library);
  });
  const int error = *log_file ? copy_log(fabric, log_file->get()) : 0;
  if (error != 0)
    report_error(
        fmt::format("cannot write the log to {}: {}", options.log_file, std::strerror(error)));
  return status;
}

}  // namespace softnic::cli
