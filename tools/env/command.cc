// SPDX-License-Identifier: Apache-2.0
#include "tools/env/command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/text_width.h"
#include "tools/env/variables.h"
#include "tools/nccl/own_plugin.h"

namespace beeline::env {
namespace {

struct Options {
  bool for_mpirun = false;
  bool for_slurm = false;
  bool for_kubernetes = false;
  bool json = false;
};

constexpr const char* kForSlurm =
    "srun passes these on to all nodes. RDMA pins its buffers: if srun bash -c 'ulimit -l' does "
    "not "
    "print \"unlimited\", set PropagateResourceLimitsExcept=MEMLOCK in slurm.conf and raise the "
    "limit of slurmd.";

// For what replaces the value that the processes have: the one of this process is added.
std::string with_own_library_path(const std::string& folder) {
  const char* const own = std::getenv("LD_LIBRARY_PATH");
  return own == nullptr || *own == '\0' ? folder : folder + ":" + own;
}

int run(const Options& options) {
  if (options.for_mpirun + options.for_slurm + options.for_kubernetes + options.json > 1) {
    return tools::print_error(Problem("--mpirun, --slurm, --k8s, --json: use one of them"),
                              tools::kUsage);
  }
  const Outcome<std::filesystem::path> folder = nccl::own_plugin_folder();
  if (!folder) return tools::print_error(folder.error());

  const std::string to_add = nccl::is_always_searched(*folder) ? "" : folder->string();
  const std::vector<Variable> all = variables(to_add);
  const std::vector<Variable> with_own =
      variables(to_add.empty() ? "" : with_own_library_path(to_add));
  const std::size_t width = tools::terminal_width();
  if (options.for_mpirun) {
    fmt::print("{}", mpirun_text(with_own));
  } else if (options.for_kubernetes) {
    const std::filesystem::path file = *folder / nccl::kOwnPluginFile;
    fmt::print("{}",
               kubernetes_text(to_add.empty() ? all : variables_of_file(file.string()), width));
  } else if (options.json) {
    fmt::print("{}", json_text(with_own));
  } else {
    fmt::print("{}", shell_text(all, width));
    if (options.for_slurm) fmt::print("{}", comment(kForSlurm, width));
  }
  return 0;
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  tools::Subcommand command = line.add("env", "Print the variables that make NCCL use the plugin",
                                       [options] { return run(*options); });
  command.add_flag("--mpirun", options->for_mpirun, "As options for Open MPI's mpirun");
  command.add_flag("--slurm", options->for_slurm, "For a job script of Slurm");
  command.add_flag("--k8s", options->for_kubernetes, "For a container in a manifest of Kubernetes");
  command.add_flag("--json", options->json, "As a JSON object of names and values");
  command.set_footer(
      "In a shell: eval \"$(beeline env)\". With mpirun: mpirun $(beeline env --mpirun) PROGRAM. "
      "`beeline doctor` says what else a host needs.");
}

}  // namespace beeline::env
