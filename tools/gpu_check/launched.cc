// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/launched.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace beeline::gpu {
namespace {

// The variables of Open MPI, MPICH and relatives, Slurm, and torchrun.
constexpr std::array kRankVariables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                    "RANK"};

Outcome<int> rank_of_this_process() {
  for (const char* const name : kRankVariables) {
    if (const char* const value = std::getenv(name); value != nullptr) return std::atoi(value);
  }
  return fail("no launcher said which rank this is: start it by mpirun, srun or torchrun");
}

}  // namespace

Outcome<void> become_rank(const Options& options) {
  const int rank = BL_TRY(rank_of_this_process());
  enter_environment({.plugin = options.plugin,
                     .witness = options.witness,
                     .net = options.net,
                     .algo = {},
                     .proto = {},
                     .memory = options.memories.front(),
                     .log_folder = options.log_folder},
                    rank);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words.front(), words.data());
  return fail(fmt::format("{}: {}", options.command.front(), std::strerror(errno)));
}

}  // namespace beeline::gpu
