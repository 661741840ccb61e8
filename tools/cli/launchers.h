// SPDX-License-Identifier: Apache-2.0
//
// The variables in which a launcher tells a process its rank, and how many there are.
#pragma once

#include <array>

namespace beeline::tools {

struct Launcher {
  const char* rank;
  const char* ranks;
};
// torchrun first: what it starts also has the variables of the srun that started torchrun.
inline constexpr std::array kLaunchers = {
    Launcher{"RANK", "WORLD_SIZE"},
    Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Launcher{"PMI_RANK", "PMI_SIZE"},
    Launcher{"SLURM_PROCID", "SLURM_NTASKS"},
};

}  // namespace beeline::tools
