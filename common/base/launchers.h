// SPDX-License-Identifier: Apache-2.0
//
// The variables in which a launcher tells a process its rank, and how many there are.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace beeline {

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

// The rank of this process.
inline std::optional<std::uint32_t> launched_rank() noexcept {
  for (const Launcher& launcher : kLaunchers) {
    const char* const text = std::getenv(launcher.rank);
    if (text == nullptr) continue;
    const std::string_view digits = text;
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc() && end == digits.data() + digits.size()) return rank;
  }
  return std::nullopt;
}

}  // namespace beeline
